// matmul_bwd_io - parameters and buffers of matmul_bwd.
struct Params {
    cols : u32,
    rows : u32, // of W in this buffer
    row0 : u32, // which rows of the whole W they are
    n_tok : u32,
    dy_stride : u32, // f32 from row to row
    n_split : u32,   // shares of the rows
    scales : u32,    // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of all adapters, see lib/lora.wgsl
    s_at : u32, // where their scales begin
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind dy read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind u read array<vec4<f32>>
//!bind a read array<vec4<f32>>
//!bind s read array<f32>
//!bind dx update array<vec4<f32>>

fn scales4(at : u32) -> vec4<f32> {
    return vec4<f32>(s[at], s[at + 1u], s[at + 2u], s[at + 3u]);
}
