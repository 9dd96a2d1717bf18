// rope_table - table[t] = cos, then sin, of the n_pair angles of position pos + pos_offset + t;
//   angle i = position * ratio^i, by i multiplications, / div[i]
//
//   div    read   n_pair f32            grid   ceil(rows * n_pair / 64) workgroups
//   table  write  rows x 2 n_pair f32   bytes  1 read + 2 writes a pair
//                                       needs  angles below 2^20; has_div 0: div is any buffer
//
// ratio = base^(-2 / head_dim), made by the host so that both sides multiply the same number.
// The device's own sin and cos are only good to 2^-11 between -pi and pi. Here an angle becomes a
// 32-bit fraction of a turn in integers, which no compiler may reorder, then polynomials on an
// eighth of a turn.
// Reference: rope_table() in src/ops/ops_cpu.c. Tolerance 1e-6 absolute at any position below 2^18.

//!include lib/base.wgsl
//!include lib/step.wgsl

struct Params {
    rows : u32,
    n_pair : u32,
    pos_offset : u32,
    has_div : u32,
    ratio : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind div read array<f32>
//!bind table update array<f32>

const WG : u32 = 64u;

// x / (2 pi) modulo 1, in units of 2^-32. 2^32 / (2 pi) = TURN + TURN_LOW / 2^12 to 44 bits.
const TURN : u32 = 683565275u;
const TURN_LOW : u32 = 2361u;

fn turns(x : f32) -> u32 {
    let whole = u32(x);
    let part = x - f32(whole);
    return whole * TURN + ((whole * TURN_LOW) >> 12u) + u32(part * 683565275.6);
}

// (cos, sin) of a fraction of a turn.
fn cos_sin(turn : u32) -> vec2<f32> {
    let quarter = (turn + 0x20000000u) >> 30u;
    let x = f32(bitcast<i32>(turn - (quarter << 30u))) * 1.4629180792671596e-9; // 2 pi / 2^32
    let x2 = x * x;
    let s = x + x * x2 * (-0.16666654611 + x2 * (0.0083321608736 + x2 * -0.00019515295891));
    let c = 1.0 - 0.5 * x2
        + x2 * x2 * (0.041666645683 + x2 * (-0.0013887316255 + x2 * 0.000024433157118));
    let v = select(vec2<f32>(c, s), vec2<f32>(-s, c), (quarter & 1u) == 1u);
    return select(v, -v, (quarter & 2u) == 2u);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let i = flat_group(wid, num) * WG + lid;
    if (i >= p.rows * p.n_pair) {
        return;
    }
    let row = i / p.n_pair;
    let pair = i % p.n_pair;
    var angle = f32(step.pos + p.pos_offset + row);
    for (var k = 0u; k < pair; k++) {
        angle *= p.ratio;
    }
    // A device's division may be off by 2.5 ulp: keep the usual 1 exact.
    if (p.has_div != 0u && div[pair] != 1.0) {
        angle /= div[pair];
    }
    let v = cos_sin(turns(angle));
    table[row * 2u * p.n_pair + pair] = v.x;
    table[row * 2u * p.n_pair + p.n_pair + pair] = v.y;
}
