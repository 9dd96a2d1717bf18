// linear_io - buffers of linear and matmul but for z.
//!include lib/gelu.wgsl
//!include lib/linear_params.wgsl
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> b : array<f32>;
@group(0) @binding(5) var<storage, read> by : array<f32>;
@group(0) @binding(6) var<storage, read_write> y : array<f32>;

override GELU : u32 = 0u; // 1: y = gelu(...) * by

fn put(tok : u32, row : u32, value : f32) {
    var v = p.scale * value;
    if (GELU == 1u) {
        v = gelu_tanh(vec4<f32>(v)).x * by[tok * p.by_stride + p.by_col + p.row0 + row];
    }
    y[tok * p.y_stride + p.row0 + row] = capped(v);
}
