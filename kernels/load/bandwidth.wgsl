// bandwidth - read every word, keep nothing: how fast this device's memory is
//
//   x  read   n vec4<u32>             grid   one workgroup per WG * 16 vectors, over x and y
//   y  write  1 u32, if ever          bytes  1 read per word
//                                     needs  nothing
//
// Reference: none; a measurement (web/engine/src/gpu/profile.ts), no op. Tolerance: none; the
// sum is not read. It is compared with a number that it almost never is, so that no compiler leaves
// the reads out.

//!include lib/base.wgsl

struct Params {
    n : u32, // vectors
}

override WG : u32 = 256u;

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<u32>>
//!bind y update array<u32>

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lane : u32) {
    var sum = vec4<u32>(0u);
    let first = flat_group(wid, num) * WG * 16u + lane;
    for (var i = 0u; i < 16u; i++) {
        let at = first + i * WG;
        if (at < p.n) {
            sum ^= x[at];
        }
    }
    let word = sum.x ^ sum.y ^ sum.z ^ sum.w;
    if (word == 0x5bd1e995u) {
        y[0] = word;
    }
}
