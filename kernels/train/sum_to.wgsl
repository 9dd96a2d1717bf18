// sum_to - out[at] += the sum of the numbers (SQUARES 1: of their squares)     (training)
//
//   x    read    n f32                grid   `parts` workgroups, or one
//   out  update  f32                  bytes  1 read an element
//                                     needs  nothing
//
// With `parts` workgroup i sets out[at + i] to the sum of its share instead: a second dispatch adds
// those up.
// Reference: sum_squares() in src/ops/ops_cpu_bwd.c. Tolerance 1e-10 nmse: f32 sums here, f64
// there.

//!axis tier plain
//!include lib/base.wgsl
//!include lib/sum.wgsl

struct Params {
    n : u32,
    at : u32,
    parts : u32, // workgroups; 0: one, that adds
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<f32>
//!bind out update array<f32>

override WG : u32 = 256u;
override SQUARES : u32 = 0u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let group = flat_group(wid, num);
    let groups = max(p.parts, 1u);
    if (group >= groups) {
        return;
    }
    var sum = 0.0;
    for (var i = group * WG + lid; i < p.n; i += groups * WG) {
        if (SQUARES == 1u) {
            sum += x[i] * x[i];
        } else {
            sum += x[i];
        }
    }
    sum = workgroup_sum(sum, lid);
    if (lid == 0u) {
        if (p.parts == 0u) {
            out[p.at] += sum;
        } else {
            out[p.at + group] = sum;
        }
    }
}
