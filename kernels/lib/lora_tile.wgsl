// lora_tile - what lib/lora.wgsl says, for tiles: B and z as more columns of W and x. There are kernels with and
// without: on some devices what a kernel might do costs even if it does not.
override LORA : u32 = 0u;

// Columns of B and z that follow those of W and x, in eights.
fn lora_eights() -> u32 {
    return select(0u, p.rank / 8u, LORA == 1u);
}

// Columns 8i .. 8i + 7 of a row of B, and the same of z, scaled.
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
