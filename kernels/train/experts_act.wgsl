// experts_act - y = gelu(g[:, 0 ...]) * b[:, col ...]     (training)
//
//   g  read   rows x g_stride f32      grid   ceil(rows * cols / 4 / 64) workgroups
//   b  read   rows x b_stride f32      bytes  2 reads + 1 write an element
//   y  write  rows x cols f32          needs  all numbers multiples of 4; g and b may be one buffer
//
// Reference: expert_forward() in src/ops/ops_cpu_bwd_experts.c. Tolerance 1e-10 nmse: the device's
// exp.

//!include lib/base.wgsl

struct Params {
    rows : u32,
    cols : u32,
    g_stride : u32,
    b_stride : u32,
    col : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind g read array<vec4<f32>>
//!bind b read array<vec4<f32>>
//!bind y update array<vec4<f32>>

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
    y[i] = gelu_tanh(g[row * (p.g_stride / 4u) + i % n]) *
           b[(row * p.b_stride + p.col) / 4u + i % n];
}
