// gelu_mul - x = gelu_tanh(x) * b[:, col ...]
//
//   b  read    rows x b_cols f32      grid   ceil(rows * cols / 4 / 256) workgroups
//   x  update  rows x cols f32        bytes  2 reads + 1 write an element
//                                     needs  cols, b_cols and col multiples of 4
//
// Reference: gelu_mul() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: the device's exp.

//!include lib/base.wgsl

struct Params {
    rows : u32,
    cols : u32,
    b_cols : u32,
    col : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind b read array<vec4<f32>>
//!bind x update array<vec4<f32>>

const WG : u32 = 256u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let n = p.cols / 4u;
    let i = flat_group(wid, num) * WG + lid;
    if (i >= p.rows * n) {
        return;
    }
    x[i] = gelu_tanh(x[i]) * b[(i / n * p.b_cols + p.col) / 4u + i % n];
}
