// residual_linear_gelu - to[t] = x[t] + norm(branch[t]) * post, then
//   y[t] = gelu(W to[t]) * by[t][by_col ...], with norm(v) = v / sqrt(mean(v^2) + eps)
//   (decode: one or a few rows t)
//
//   x       read   n_tok x cols f32
//   branch  read   n_tok x cols f32
//   post    read   cols f32
//   w       read   rows x cols
//   by      read   n_tok rows of f32
//   to      write  n_tok x cols f32
//   y       write  n_tok x rows f32
//   grid   each t in turn: any number of workgroups
//   bytes  W once a row t; the rest comes from the cache
//   needs  cols % 16 == 0; cols <= 4 SHARED_ROW and 16 WG
//
// Every workgroup computes the residual for itself: that is cheaper than a dispatch for which all
// would wait.
//
// Reference: the nodes of rule residual_linear_gelu, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse:
// f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product own
//!axis matrices 1
//!axis input shared_row
//!axis vectors own
//!without acts == int8 && format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl
//!include lib/residual.wgsl

struct Params {
    cols : u32,
    rows : u32,
    n_tok : u32, // rows of x and y
    y_stride : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    by_stride : u32, // f32 from row to row of `by`
    by_col : u32,    // its column that meets column 0 of y
    has_branch : u32,
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind branch read array<vec4<f32>>
//!bind post read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind by read array<f32>
//!bind to update array<vec4<f32>>
//!bind y update array<f32>

fn post_of(i : u32) -> vec4<f32> {
    return post[i];
}

fn factor() -> f32 {
    return 1.0;
}

fn normed() -> bool {
    return false;
}

fn next_of(i : u32) -> vec4<f32> {
    return vec4<f32>(1.0);
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
        let rows = four_from(first, p.rows);
        let h = add_lanes(four_rows(rows, 0u, lane), id);
        for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
            let r = lane + k * LANES;
            if (r >= R) {
                break;
            }
            if (first + r < p.rows) {
                y[tok * p.y_stride + first + r] =
                    gelu(h[r]) * by[tok * p.by_stride + p.by_col + first + r];
            }
        }
        workgroupBarrier(); // before the next block's sum
    }
}
