// lora - the adapters of a linear, all at once: sum over k of s_k z_k B[:, k], where z = A x is made before.
// Needs Params with rank (of all together, a multiple of 8; 0: none), b_rows (rows of one whole B) and b_scales,
// and the buffers z (rank f32 a row) and b: for each matrix rank x b_rows f32, B turned; at b_scales the rank s_k.

// This lane's part for four rows of matrix `mat`; z begins at z_base.
fn lora_rows(mat : u32, rows : vec4<u32>, z_base : u32, lane : u32, lanes : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var k = lane; k < p.rank; k += lanes) {
        let at = vec4<u32>((mat * p.rank + k) * p.b_rows) + rows;
        sum += z[z_base + k] * b[p.b_scales + k] * vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
    }
    return sum;
}

// For tiles: columns 8i .. 8i + 7 of a row of B, and the same of z, scaled.
fn lora_eight(mat : u32, row : u32, i : u32) -> Eight {
    let n = p.b_rows;
    let at = (mat * p.rank + 8u * i) * n + row;
    return Eight(vec4<f32>(b[at], b[at + n], b[at + 2u * n], b[at + 3u * n]),
                 vec4<f32>(b[at + 4u * n], b[at + 5u * n], b[at + 6u * n], b[at + 7u * n]));
}

fn lora_scaled(at : u32, s : u32) -> vec4<f32> {
    return vec4<f32>(z[at] * b[s], z[at + 1u] * b[s + 1u], z[at + 2u] * b[s + 2u],
                     z[at + 3u] * b[s + 3u]);
}

fn z_eight(z_base : u32, i : u32) -> Eight {
    let at = z_base + 8u * i;
    let s = p.b_scales + 8u * i;
    return Eight(lora_scaled(at, s), lora_scaled(at + 4u, s + 4u));
}
