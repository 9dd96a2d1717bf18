// shorts - rows of 16-bit numbers, eight to a vec4, each row with a scale of its own: what a product of two matrices is kept as. Needs Params with cols (a
// multiple of 8) and m_rows; the buffer m: the rows, then their scales as f32; x_at(i), vec4 i of what they are multiplied with; lib/lanes and lib/turns.
// Eight of them times what they meet.
fn shorts_dot(row : u32, u : u32, low : vec4<f32>, high : vec4<f32>) -> f32 {
    let q = m[row * (p.cols / 8u) + u];
    return dot(vec4<f32>(unpack2x16snorm(q.x), unpack2x16snorm(q.y)), low) +
           dot(vec4<f32>(unpack2x16snorm(q.z), unpack2x16snorm(q.w)), high);
}

fn shorts_scale(row : u32) -> f32 {
    let at = p.m_rows * (p.cols / 2u) + row;
    return bitcast<f32>(m[at >> 2u][at & 3u]);
}

// This lane's part of the products of R rows.
fn shorts_rows(rows : vec4<u32>, lane : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let u = lane + turn * LANES;
        if (u >= p.cols / 8u) {
            break;
        }
        let low = x_at(2u * u);
        let high = x_at(2u * u + 1u);
        sum.x += shorts_dot(rows.x, u, low, high);
        if (R > 1u) {
            sum.y += shorts_dot(rows.y, u, low, high);
        }
        if (R > 2u) {
            sum.z += shorts_dot(rows.z, u, low, high);
            sum.w += shorts_dot(rows.w, u, low, high);
        }
    }
    return sum;
}
