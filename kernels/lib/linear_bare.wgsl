// linear_bare - linear and linear_digits of a matrix without adapters, and without a gelu: fewer buffers, each of which costs the host.
//!include lib/linear_params.wgsl
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind y update array<f32>

fn put(tok : u32, row : u32, value : f32) {
    y[tok * p.y_stride + p.row0 + row] = p.scale * value;
}

fn adapted(rows : vec4<u32>, tok : u32, lane : u32) -> vec4<f32> {
    return vec4<f32>();
}
