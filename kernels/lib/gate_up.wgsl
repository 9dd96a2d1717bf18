// gate_up - the kernel of that name without its shape, its activations, put_rows(), adapted() and
// add_lanes(): a file and its tier choose.
//!include lib/base.wgsl
//!include lib/pair_rows.wgsl

struct Params {
    cols : u32,
    rows : u32,     // of each matrix
    n_tok : u32,    // rows of x and y
    x_stride : u32, // f32 from row to row, a multiple of 4
    y_stride : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    settles : u32, // see lib/put_settled.wgsl
    rank : u32,    // from here on: adapters, see lib/gate_up_lora.wgsl
    rank2 : u32,
    b_scales : u32,
    b_scales2 : u32,
    z_at : u32, // where the z of each matrix begin in x, in f32
    z_at2 : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind w2 read array<vec4<u32>>
//!bind y update array<f32>

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let teams = WG / LANES;
    let per_tok = (p.rows + R * teams - 1u) / (R * teams);
    let turn = turn_of(flat_group(wid, num), per_tok);
    let tok = turn.row;
    if (tok >= p.n_tok) {
        return;
    }
    let first = R * (swizzle_group(turn.at, per_tok) * teams + id / LANES);
    let rows = four_from(first, p.rows);
    let mine = pair_rows(rows, tok * (p.x_stride / 4u), id % LANES);
    let sums = add_pair(adapted(mine, rows, tok, id % LANES), id);
    put_rows(tok, first, sums.first, sums.second, id);
}
