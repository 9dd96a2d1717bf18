// linear_given - what adapters add to linear where z = A x was made before.
//!include lib/base.wgsl
//!include lib/lora.wgsl
override LORA : u32 = 0u; // 1: there are adapters; 2: and z, of one row t, is the sum of z_parts

fn part_z(i : u32, k : u32) -> f32 {
    return select(0.0, z[min(i, p.z_parts - 1u) * p.rank + k], i < p.z_parts);
}

// Eight parts are on their way at a time.
fn sum_z(k : u32) -> f32 {
    var sum = 0.0;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let i = 8u * turn;
        if (i >= p.z_parts) {
            break;
        }
        sum += ((part_z(i, k) + part_z(i + 1u, k)) + (part_z(i + 2u, k) + part_z(i + 3u, k))) +
               ((part_z(i + 4u, k) + part_z(i + 5u, k)) + (part_z(i + 6u, k) + part_z(i + 7u, k)));
    }
    return sum;
}

fn adapted(rows : vec4<u32>, tok : u32, lane : u32) -> vec4<f32> {
    if (LORA == 1u) {
        return lora_rows(0u, rows, tok * p.rank, lane, LANES);
    }
    if (LORA == 2u) {
        var sum = vec4<f32>();
        for (var k = lane; k < p.rank; k += LANES) {
            let at = rows + k * p.b_rows;
            sum += sum_z(k) * b[p.b_scales + k] * vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
        }
        return sum;
    }
    return vec4<f32>();
}
