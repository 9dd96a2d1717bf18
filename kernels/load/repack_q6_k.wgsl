// repack_q6_k - the codes of blocks of Q6_K, those of each group of 32 together     (loading)
//
//   x  read    blocks as in the file, from unit `at` on   grid   one thread per u32 of y,
//   y  update  the weight, from u32 `to` on                      workgroups over x and y
//                                                         bytes  2 to 8 reads + 1 write a u32
//                                                         needs  whole blocks; `at` is counted in
//                                                                units of 16 bits, since blocks are
//                                                                no whole u32s
//
// In the file a byte has four bits of weights that are 64 apart, or two bits of four that are 32
// apart: src/quant/q6_k.c. Here bytes 16g .. 16g + 15 of a block are low bits of group g, its first
// sixteen weights in the low nibbles; then come two u32 for each group, one for its first sixteen
// weights and one for the others: of weights 4c + b two bits each, in byte b the bits 2c and 2c +
// 1.
//
// Reference: repack_q6_k() in src/gpu/repack.c. Tolerance 0: bits are moved.

//!include lib/base.wgsl

struct Params {
    n : u32, // u32s of y
    at : u32,
    to : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<u32>
//!bind y update array<u32>

const WG : u32 = 256u;
const FILE_BLOCK : u32 = 105u; // units
const BLOCK : u32 = 48u;       // u32s
const LOW : u32 = 32u;         // of them have low bits
const LOW_UNITS : u32 = 64u;   // in the file

// Four bytes from a unit on.
fn four_bytes(unit : u32) -> u32 {
    let first = x[unit / 2u];
    if (unit % 2u == 0u) {
        return first;
    }
    return (first >> 16u) | (x[unit / 2u + 1u] << 16u);
}

// u32 c of group g.
fn low_bits(block : u32, g : u32, c : u32) -> u32 {
    let at = block + 32u * (g / 4u) + 16u * (g % 2u) + 2u * c;
    let shift = 2u * (g & 2u);
    let mask = 0x0f0f0f0fu;
    return ((four_bytes(at) >> shift) & mask) | (((four_bytes(at + 8u) >> shift) & mask) << 4u);
}

// Run r of group g.
fn high_bits(block : u32, g : u32, r : u32) -> u32 {
    let at = block + LOW_UNITS + 16u * (g / 4u) + 8u * r;
    var bits = 0u;
    for (var c = 0u; c < 4u; c++) {
        bits |= ((four_bytes(at + 2u * c) >> (2u * (g % 4u))) & 0x03030303u) << (2u * c);
    }
    return bits;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lane : u32) {
    let i = flat_group(wid, num) * WG + lane;
    if (i >= p.n) {
        return;
    }
    let block = p.at + i / BLOCK * FILE_BLOCK;
    let k = i % BLOCK;
    if (k < LOW) {
        y[p.to + i] = low_bits(block, k / 4u, k % 4u);
    } else {
        y[p.to + i] = high_bits(block, (k - LOW) / 2u, k % 2u);
    }
}
