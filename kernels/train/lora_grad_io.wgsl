// lora_grad_io - parameters and buffers of lora_grad.
struct Params {
    n : u32,
    wide : u32,
    rank : u32,
    z_stride : u32,
    z_at : u32,
    out_k : u32,
    out_j : u32,
    out_mat : u32, // from matrix to matrix
    n_mat : u32,
    n_used : u32,
    by_slot : u32,
    s : f32,
    salt : u32,
    share : f32,
    kept : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind z read array<vec4<f32>>
//!bind x read array<vec4<f32>>
//!bind ids read array<i32>
//!bind out update array<f32>

//!include train/dropout.wgsl

override MANY : u32 = 0u;
