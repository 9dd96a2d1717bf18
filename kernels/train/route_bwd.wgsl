// route_bwd - from the gradients of the chosen experts' weights to those of all scores: for the
//   chosen ds = w (dw - sum w dw), for the others 0     (training)
//
//   ids  read   rows x n_used i32        grid   ceil(rows * n_expert / 64) workgroups
//   w    read   rows x n_used f32        bytes  3 n_used reads + 1 write a score
//   dw   read   rows x n_used f32        needs  nothing
//   ds   write  rows x n_expert f32
//
// The weights are the softmax of the chosen scores alone.
// Reference: cpu_route_bwd() in src/ops/ops_cpu_bwd_experts.c. Tolerance 1e-12 nmse: f32 sums of
// n_used.

//!include lib/base.wgsl

struct Params {
    rows : u32,
    n_used : u32,
    n_expert : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind ids read array<i32>
//!bind w read array<f32>
//!bind dw read array<f32>
//!bind ds update array<f32>

const WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let i = flat_group(wid, num) * WG + lid;
    if (i >= p.rows * p.n_expert) {
        return;
    }
    let at = i / p.n_expert * p.n_used;
    var mean = 0.0;
    for (var j = 0u; j < p.n_used; j++) {
        mean += w[at + j] * dw[at + j];
    }
    var v = 0.0;
    for (var j = 0u; j < p.n_used; j++) {
        if (u32(ids[at + j]) == i % p.n_expert) {
            v = w[at + j] * (dw[at + j] - mean);
        }
    }
    ds[i] = v;
}
