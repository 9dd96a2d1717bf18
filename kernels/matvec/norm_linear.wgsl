// norm_linear - to[t] = (x[t] + norm(branch[t]) * post) * scale[0], h = norm(to[t]) * next_w, then
//   y[t] = W h, with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one or a few rows t)
//
//   x        read   n_tok x cols f32
//   branch   read   n_tok x cols f32
//   vectors  read   post, scale and next_w at their places, in vec4s
//   w        read   rows x cols
//   to       write  n_tok x cols f32
//   y        write  n_tok x rows f32
//   grid   each t in turn: any number of workgroups
//   bytes  W once a row t; the rest comes from the cache
//   needs  cols % 16 == 0; cols <= 4 SHARED_ROW and 16 WG; has_branch 0: nothing is added, branch
//          is any buffer; has_scale 0: factor 1
//
// norm_linears with one matrix and one branch. It has fewer buffers, each of which costs the host.
//
// Reference: the nodes of rule norm_linears, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums
// here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product own
//!axis matrices 1
//!axis input shared_row
//!axis vectors one
//!without acts == int8 && format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl
//!include lib/residual.wgsl

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
    // Each workgroup of a row takes several blocks of row groups, so that few of them compute the
    // residual.
    let row_groups = WG / LANES;
    let groups = groups_a_row(num, p.n_tok);
    let turn = turn_of(flat_group(wid, num), groups);
    let tok = turn.row;
    if (tok >= p.n_tok) {
        return;
    }
    share_row(tok, id, turn.at == 0u);
    let lane = id % LANES;
    for (var i = 0u; i < MOST_TURNS; i++) {
        let block = turn.at + i * groups;
        if (block * R * row_groups >= p.rows) {
            break;
        }
        let first = R * (block * row_groups + id / LANES);
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
