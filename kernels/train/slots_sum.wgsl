// slots_sum - y[t] += the sum of x[slot] over the slots of row t (fresh: y[t] = that)
//   (training)
//
//   x  read    rows x n_used x cols f32      grid   ceil(rows * cols / 4 / 64) workgroups
//   y  update  rows x cols f32               bytes  1 read an element of x, 1 read + 1 write of y
//                                            needs  cols % 4 == 0
//
// Reference: cpu_experts_bwd() in src/ops/ops_cpu_bwd_experts.c. Tolerance 1e-12 nmse: another
// order.

//!include lib/base.wgsl

struct Params {
    rows : u32,
    n_used : u32,
    cols : u32,
    fresh : u32, // 1: y is set, not added to
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
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
    var sum = vec4<f32>();
    if (p.fresh == 0u) {
        sum = y[i];
    }
    for (var s = 0u; s < p.n_used; s++) {
        sum += x[(i / n * p.n_used + s) * n + i % n];
    }
    y[i] = sum;
}
