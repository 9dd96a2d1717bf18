// zero - x = 0
//
//   x  write  n f32                   grid   one thread per four numbers
//                                     bytes  1 write an element
//                                     needs  x whole vec4s: what follows n up to one is zeroed too
//
// Reference: zero() in src/ops/ops_cpu_bwd.c. Tolerance 0.

//!include lib/base.wgsl

struct Params {
    n : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x update array<vec4<f32>>

const WG : u32 = 256u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let i = flat_group(wid, num) * WG + lid;
    if (4u * i < p.n) {
        x[i] = vec4<f32>();
    }
}
