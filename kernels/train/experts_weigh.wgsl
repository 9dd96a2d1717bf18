// experts_weigh - y[slot] = weight[slot] * scale[expert] * x[row of the slot]     (training)
//
//   x        read   n_slots / n_used x cols f32   grid   ceil(n_slots * cols / 4 / 64) workgroups
//   ids      read   n_slots i32                   bytes  1 read + 1 write an element of y
//   weights  read   n_slots f32                   needs  cols % 4 == 0; has_factor 0: scale is any
//   scale    read   n_expert f32                         buffer
//   y        write  n_slots x cols f32
//
// Reference: gather_expert() in src/ops/ops_cpu_bwd_experts.c. Tolerance 0.

//!include lib/base.wgsl

struct Params {
    n_slots : u32,
    n_used : u32,
    cols : u32,
    has_factor : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind ids read array<i32>
//!bind weights read array<f32>
//!bind scale read array<f32>
//!bind y update array<vec4<f32>>

const WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let n = p.cols / 4u;
    let i = flat_group(wid, num) * WG + lid;
    let slot = i / n;
    if (slot >= p.n_slots) {
        return;
    }
    var factor = weights[slot];
    if (p.has_factor != 0u) {
        factor *= scale[ids[slot]];
    }
    y[i] = factor * x[slot / p.n_used * n + i % n];
}
