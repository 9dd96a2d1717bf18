// linear_given - what adapters add to linear where z = A x was made before.
//!include lib/given_z.wgsl
//!include lib/lora.wgsl
override LORA : u32 = 0u; // 1: there are adapters; 2: and z, of one row t, is the sum of z_parts

fn begin_adapters(tok : u32, id : u32) {
}

fn adapted(rows : vec4<u32>, tok : u32, lane : u32) -> vec4<f32> {
    if (LORA == 1u) {
        return lora_rows(0u, rows, tok * p.rank, lane, LANES);
    }
    if (LORA == 2u) {
        var sum = vec4<f32>();
        for (var k = lane; k < p.rank; k += LANES) {
            var z_k = 0.0;
            for (var i = 0u; i < p.z_parts; i++) {
                z_k += z[i * p.rank + k];
            }
            let at = rows + k * p.b_rows;
            sum += z_k * b[p.b_scales + k] * vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
        }
        return sum;
    }
    return vec4<f32>();
}
