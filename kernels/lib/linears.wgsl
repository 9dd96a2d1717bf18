// linears - linears_digits, linears_digits_mixed and the two for matrices with adapters without their shapes, add_lanes() and
// adapted(): a file and its tier choose.
//!include lib/base.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    n_tok : u32, // rows of x and of the results
    rows : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rows2 : u32,
    scales2 : u32,
    high2 : u32,
    d2 : u32,
    rows3 : u32,
    scales3 : u32,
    high3 : u32,
    d3 : u32,
    rank : u32, // from here on: adapters, see lib/linears_lora.wgsl
    rank2 : u32,
    rank3 : u32,
    b_scales : u32,
    b_scales2 : u32,
    b_scales3 : u32,
    z_at : u32, // where the z of each matrix begin in x, in f32
    z_at2 : u32,
    z_at3 : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind w2 read array<vec4<u32>>
//!bind w3 read array<vec4<u32>>
//!bind y update array<f32>
//!bind y2 update array<f32>
//!bind y3 update array<f32>

override MATRICES : u32 = 3u; // so many there are: no code for more

const NO_UNIT : u32 = 0x7fffffffu; // a lane past the end of every row

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    // The teams of the matrices follow each other.
    let ends = (vec3<u32>(p.rows, p.rows2, p.rows3) + vec3<u32>(R - 1u)) / vec3<u32>(R);
    let teams = WG / LANES;
    let per_tok = (ends.x + ends.y + ends.z + teams - 1u) / teams;
    let turn = turn_of(flat_group(wid, num), per_tok);
    let tok = turn.row;
    if (tok >= p.n_tok) {
        return;
    }
    let team = swizzle_group(turn.at, per_tok) * teams + id / LANES;
    let lane = id % LANES;
    let ones = team < ends.x;
    let twos = !ones && team < ends.x + ends.y;
    let first = R * (team - select(select(ends.x + ends.y, ends.x, twos), 0u, ones));
    let x_base = tok * (p.cols / 4u);
    // One loop after the other, two of them without a unit: so `which` is a number that the compiler sees, and no load
    // has to choose or to wait for a branch.
    which = 0u;
    var mine = four_rows(four_from(first, p.rows), x_base, select(NO_UNIT, lane, ones));
    if (MATRICES > 1u) {
        which = 1u;
        mine += four_rows(four_from(first, p.rows2), x_base, select(NO_UNIT, lane, twos));
    }
    if (MATRICES > 2u) {
        which = 2u;
        mine += third_rows(four_from(first, p.rows3), x_base, select(lane, NO_UNIT, ones || twos));
    }
    mine += adapted(select(select(2u, 1u, twos), 0u, ones), first, tok, lane);
    let sum = add_lanes(mine, id);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r >= R) {
            break;
        }
        let row = first + r;
        if (ones && row < p.rows) {
            y[tok * p.rows + row] = sum[r];
        } else if (twos && row < p.rows2) {
            y2[tok * p.rows2 + row] = sum[r];
        } else if (!ones && !twos && row < p.rows3) {
            y3[tok * p.rows3 + row] = sum[r];
        }
    }
}
