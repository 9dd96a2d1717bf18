// experts_combine - y[t] = sum over slots s of weights[t][s] factor_e x[t][s], e = ids[t][s]
//
//   x        read   n_tok x n_used x cols f32   grid   ceil(n_tok * cols / 4 / 64) workgroups
//   ids      read   n_tok x n_used i32          bytes  x once, y once
//   weights  read   n_tok x n_used f32          needs  cols % 4 == 0; has_factor 0: factor is any
//   factor   read   n_expert f32                       buffer, unread, and factor_e is 1
//   y        write  n_tok x cols f32
//
// Reference: experts() in src/ops/ops_cpu.c. Tolerance 1e-12 nmse: the same sums in f32.

//!include lib/base.wgsl

struct Params {
    n_tok : u32,
    n_used : u32,
    cols : u32,
    has_factor : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind ids read array<i32>
//!bind weights read array<f32>
//!bind factor read array<f32>
//!bind y update array<vec4<f32>>

const WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let n4 = p.cols / 4u;
    let i = flat_group(wid, num) * WG + lid;
    if (i >= p.n_tok * n4) {
        return;
    }
    let tok = i / n4;
    var sum = vec4<f32>();
    for (var slot = tok * p.n_used; slot < (tok + 1u) * p.n_used; slot++) {
        var weight = weights[slot];
        if (p.has_factor == 1u) {
            weight *= factor[ids[slot]];
        }
        sum += weight * x[slot * n4 + i % n4];
    }
    y[i] = sum;
}
