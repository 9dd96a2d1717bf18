// join_linear - the kernel of that name without its shape and add_over(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/join_vectors.wgsl
//!include lib/joining.wgsl
//!include lib/hold.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    n_tok : u32, // rows of x and y
    has_branch : u32,
    has_scale : u32,
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    rows : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind branch read array<vec4<f32>>
//!bind vectors read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind to update array<vec4<f32>>
//!bind y update array<f32>

fn normed() -> bool {
    return true;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    // The workgroups of a row take its teams' rows in turn, so that few of them join.
    let teams = WG / LANES;
    let groups = groups_a_row(num, p.n_tok);
    let turn = turn_of(flat_group(wid, num), groups);
    let tok = turn.row;
    if (tok >= p.n_tok) {
        return;
    }
    hold(tok, id, turn.at == 0u);
    let lane = id % LANES;
    for (var i = 0u; i < MOST_TURNS; i++) {
        let block = turn.at + i * groups;
        if (block * R * teams >= p.rows) {
            break;
        }
        let first = R * (block * teams + id / LANES);
        let sum = add_lanes(four_rows(four_from(first, p.rows), 0u, lane), id);
        for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
            let r = lane + k * LANES;
            if (r >= R) {
                break;
            }
            if (first + r < p.rows) {
                y[tok * p.rows + first + r] = sum[r];
            }
        }
        workgroupBarrier(); // before the next block's sum
    }
}
