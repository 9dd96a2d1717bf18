// linear_given - what adapters add to linear where z = A x was made before.
//!include lib/given_z.wgsl
//!include lib/lora.wgsl
override LORA : u32 = 0u; // 1: there are adapters

fn begin_adapters(tok : u32, id : u32) {
}

fn adapted(rows : vec4<u32>, tok : u32, lane : u32) -> vec4<f32> {
    if (LORA == 1u) {
        return lora_rows(0u, rows, tok * p.rank, lane, LANES);
    }
    return vec4<f32>();
}
