// repack_q4_k - blocks of Q4_K with the nibbles of each group together     (loading)
//
//   x  read    blocks as in the file, from u32 `at` on   grid   one thread per u32 of y, workgroups
//   y  update  the weight, from u32 `to` on                     over x and y
//                                                        bytes  2 reads + 1 write a u32
//                                                        needs  whole blocks
//
// In the file bytes 32p .. 32p + 31 of a block hold group 2p in their low nibbles and group 2p + 1
// in their high ones. Here bytes 16g .. 16g + 15 are group g, its first sixteen weights low: so one
// load of a lane has one scale. The header stays.
//
// Reference: repack_q4_k() in src/gpu/repack.c. Tolerance 0: bits are moved.

//!include lib/base.wgsl

struct Params {
    n : u32, // u32s of all blocks
    at : u32,
    to : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<u32>
//!bind y update array<u32>

const WG : u32 = 256u;
const BLOCK : u32 = 36u; // u32s
const HEADER : u32 = 4u;
const LOW : u32 = 0x0f0f0f0fu;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lane : u32) {
    let i = flat_group(wid, num) * WG + lane;
    if (i >= p.n) {
        return;
    }
    let k = i % BLOCK;
    if (k < HEADER) {
        y[p.to + i] = x[p.at + i];
        return;
    }
    let group = (k - HEADER) / 4u;
    let pair = p.at + i - k + HEADER + group / 2u * 8u + k % 4u; // k % 4 is that of k - HEADER
    let shift = 4u * (group % 2u);
    y[p.to + i] = ((x[pair] >> shift) & LOW) | (((x[pair + 4u] >> shift) & LOW) << 4u);
}
