// gelu_mul_bwd - y = gelu(a) * b[:, col ...]: d = dy becomes dy * b * gelu'(a), and db = dy *
//   gelu(a)
//
//   a   read    rows x a_stride f32   grid   ceil(rows * cols / 4 / 64) workgroups
//   b   read    rows x b_stride f32   bytes  3 reads + 2 writes an element
//   d   update  rows x cols f32       needs  all numbers multiples of 4; has_db 0: db is any
//   db  write   rows x cols f32              buffer, unwritten
//
// Reference: gelu_mul_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-10 nmse: the device's exp.

//!include lib/base.wgsl

struct Params {
    rows : u32,
    cols : u32,
    a_stride : u32,
    b_stride : u32,
    b_col : u32,
    has_db : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind a read array<vec4<f32>>
//!bind b read array<vec4<f32>>
//!bind d update array<vec4<f32>>
//!bind db update array<vec4<f32>>

const WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let n = p.cols / 4u;
    let i = flat_group(wid, num) * WG + lid;
    if (i >= p.rows * n) {
        return;
    }
    let row = i / n;
    let gate = a[row * (p.a_stride / 4u) + i % n];
    let dy = d[i];
    if (p.has_db != 0u) {
        db[i] = dy * gelu_tanh(gate);
    }
    d[i] = dy * b[(row * p.b_stride + p.b_col) / 4u + i % n] * gelu_slope(gate);
}
