// lora_in_io - parameters and buffers of lora_in.
struct Params {
    cols : u32,
    stride : u32, // f32 from row to row of M
    rank : u32,
    n_tok : u32,
    z_stride : u32,
    at : u32,
    salt : u32,
    share : f32,
    kept : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind m read array<vec4<f32>>
//!bind z update array<f32>

//!include train/dropout.wgsl
