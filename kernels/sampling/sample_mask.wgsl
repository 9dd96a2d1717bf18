// sample_mask - logits whose bit is 0 become minus infinity: what a grammar allows next
//
//   mask    read    ceil(n / 32) u32, bit i % 32 of word i / 32
//   logits  update  first + n f32, as u32
//   grid   ceil(n / 256) workgroups
//   bytes  1 bit, 1 write where it is 0
//   needs  nothing
//
// Reference: forbid() in src/text/sampler.c. Tolerance 0.

//!include lib/base.wgsl

struct Params {
    n : u32,     // logits
    first : u32, // index of the first one: a row of several
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind mask read array<u32>
//!bind logits update array<u32>

const WG : u32 = 256u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let i = flat_group(wid, num) * WG + lid;
    if (i < p.n && ((mask[i / 32u] >> (i % 32u)) & 1u) == 0u) {
        logits[p.first + i] = 0xff800000u;
    }
}
