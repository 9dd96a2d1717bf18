// linear_io - buffers of linear and matmul. z is what adapters have made of x: n_tok x rank f32.
//!include lib/base.wgsl
//!include lib/linear_params.wgsl
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind z read array<f32>
//!bind b read array<f32>
//!bind by read array<f32>
//!bind y update array<f32>

override GELU : u32 = 0u; // 1: y = gelu(...) * by

fn put(tok : u32, row : u32, value : f32) {
    var v = p.scale * value;
    if (GELU == 1u) {
        v = gelu_tanh(vec4<f32>(v)).x * by[tok * p.by_stride + p.by_col + p.row0 + row];
    }
    y[tok * p.y_stride + p.row0 + row] = v;
}
