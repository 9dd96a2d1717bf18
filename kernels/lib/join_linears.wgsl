// join_linears - the kernel of that name and join_linears_mixed, without their shapes, add_over() and what becomes of the
// results: a file and its tier choose.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/join_vectors.wgsl
//!include lib/joining.wgsl
//!include lib/hold.wgsl
//!include lib/hold_sum.wgsl
//!include lib/four_rows.wgsl
//!include lib/three_rows.wgsl

struct Params {
    cols : u32,
    n_tok : u32, // rows of x and of the results
    has_branch : u32,
    has_scale : u32,
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    other_at : u32, // of two branches, see lib/hold_sum.wgsl
    branch_w_at : u32,
    other_w_at : u32,
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
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind branch read array<vec4<f32>>
//!bind vectors read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind w2 read array<vec4<u32>>
//!bind w3 read array<vec4<u32>>
//!bind to update array<vec4<f32>>

override BRANCHES : u32 = 1u; // 1 or 2

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    // R rows a team; the teams of the matrices follow each other. The workgroups of a row of x take them in
    // turn, so that few of them join.
    let ends = n_teams();
    let teams = WG / LANES;
    let groups = groups_a_row(num, p.n_tok);
    let turn = turn_of(flat_group(wid, num), groups);
    let tok = turn.row;
    if (tok >= p.n_tok) {
        return;
    }
    if (BRANCHES == 2u) {
        hold_sum(tok, id, turn.at == 0u);
    } else {
        hold(tok, id, turn.at == 0u);
    }
    let lane = id % LANES;
    for (var i = 0u; i < MOST_TURNS; i++) {
        let block = turn.at + i * groups;
        if (block * teams >= ends.x + ends.y + ends.z) {
            break;
        }
        let team = block * teams + id / LANES;
        let mine = three_rows(team, lane);
        let first = mine.first;
        let sum = add_lanes(mine.sum, id);
        let n_rows = of_three(p.rows, p.rows2, p.rows3);
        for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
            let r = lane + k * LANES;
            if (r >= R) {
                break;
            }
            if (first + r < n_rows) {
                put(tok, first + r, sum[r]);
            }
        }
        workgroupBarrier(); // before the next block's sum
    }
}
