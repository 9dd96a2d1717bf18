// repack_blocks - y = bytes [at, at + size) of every block of x, one block's after the other's
//   (loading)
//
//   x  read    blocks as in the file   grid   one thread per u32 of y, workgroups over x and y
//   y  update  the weight, from u32    bytes  1 read + 1 write per byte of the part
//              `to` on                 needs  everything in halves: sizes of blocks and parts are
//                                             even
//
// A last u32 that is only half filled ends with zeros. Counted in units of 16 bits, since the
// blocks of the file are no whole u32s.
//
// Reference: split_blocks() in src/gpu/repack.c. Tolerance 0: bytes are moved.

//!include lib/base.wgsl

struct Params {
    n : u32,     // units of the part in all blocks
    block : u32, // units of a block
    at : u32,    // units of a block before the part
    size : u32,  // units of the part in a block
    to : u32,    // u32 of y before the part
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<u32>
//!bind y update array<u32>

override WG : u32 = 256u;

// Unit i of the part.
fn unit(i : u32) -> u32 {
    if (i >= p.n) {
        return 0u;
    }
    let at = i / p.size * p.block + p.at + i % p.size;
    return (x[at / 2u] >> (16u * (at % 2u))) & 0xffffu;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lane : u32) {
    let i = flat_group(wid, num) * WG + lane;
    if (i < (p.n + 1u) / 2u) {
        y[p.to + i] = unit(2u * i) | (unit(2u * i + 1u) << 16u);
    }
}
