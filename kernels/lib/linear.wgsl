// linear - the kernel of that name, linear_digits and those of matrices without adapters, without their shape, their activations, their
// buffers, add_lanes() and what adapters do: a file and its tier choose.
//!include lib/base.wgsl
//!include lib/four_rows.wgsl

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
    let lane = id % LANES;
    let mine = four_rows(rows, tok * (p.x_stride / 4u), lane) + adapted(rows + p.row0, tok, lane);
    let sum = add_lanes(mine, id);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r >= R) {
            break;
        }
        if (first + r < p.rows) {
            put(tok, first + r, sum[r]);
        }
    }
}
