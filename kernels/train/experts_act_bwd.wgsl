// experts_act_bwd - g is gate and up side by side, n_ff each; from d, the gradient of gelu(gate) *
//   up, to theirs     (training)
//
//   g   read   rows x 2 n_ff f32       grid   ceil(rows * n_ff / 4 / 64) workgroups
//   d   read   rows x n_ff f32         bytes  3 reads + 2 writes an element of d
//   dg  write  rows x 2 n_ff f32       needs  n_ff % 4 == 0
//
// Reference: expert_backward() in src/ops/ops_cpu_bwd_experts.c. Tolerance 1e-10 nmse: the device's
// exp.

//!include lib/base.wgsl

struct Params {
    rows : u32,
    n_ff : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind g read array<vec4<f32>>
//!bind d read array<vec4<f32>>
//!bind dg update array<vec4<f32>>

const WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let n = p.n_ff / 4u;
    let i = flat_group(wid, num) * WG + lid;
    if (i >= p.rows * n) {
        return;
    }
    let at = i / n * 2u * n + i % n;
    let gate = g[at];
    dg[at] = d[i] * g[at + n] * gelu_slope(gate);
    dg[at + n] = d[i] * gelu_tanh(gate);
}
