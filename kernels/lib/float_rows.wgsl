// float_rows - rows of f32 that a product takes along: 32 lanes share four of them, and all that they read is on its way at once. Needs Params with cols (a
// multiple of 8) and m_rows; the buffer m; x_at(i), vec4 i of what they are multiplied with; lib/lanes and lib/turns.
const M_LANES : u32 = 32u;
const M_ROWS : u32 = 4u;

fn m_dot(row : u32, u : u32, low : vec4<f32>, high : vec4<f32>) -> f32 {
    let at = row * (p.cols / 4u) + 2u * u;
    return dot(m[at], low) + dot(m[at + 1u], high);
}

// This lane's part of the products.
fn float_rows(rows : vec4<u32>, lane : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let u = lane + turn * M_LANES;
        if (u >= p.cols / 8u) {
            break;
        }
        let low = x_at(2u * u);
        let high = x_at(2u * u + 1u);
        sum += vec4<f32>(m_dot(rows.x, u, low, high), m_dot(rows.y, u, low, high), m_dot(rows.z, u, low, high), m_dot(rows.w, u, low, high));
    }
    return sum;
}
