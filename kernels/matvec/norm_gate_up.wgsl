// norm_gate_up - to[t] = x[t] + norm(branch[t]) * post, h = norm(to[t]) * next_w, then
//   y[t] = gelu(W h) * (W2 h), with norm(v) = v / sqrt(mean(v^2) + eps)
//   (decode: one or a few rows t)
//
//   x        read   n_tok x cols f32
//   branch   read   n_tok x cols f32
//   vectors  read   post and next_w at their places, in vec4s
//   w        read   gate, rows x cols
//   w2       read   up, as w
//   to       write  n_tok x cols f32
//   y        write  n_tok x rows f32
//   s        write  y, ready
//   grid   each t in turn: any number of workgroups
//   bytes  W and W2 once a row t; the rest comes from the cache
//   needs  cols % 16 == 0; cols <= 4 SHARED_ROW and 16 WG; makes_ready: rows % 16 == 0 and R WG /
//          LANES % 16 == 0, else s is any buffer, unwritten
//
// Every workgroup computes the residual and its norm for itself: that is cheaper than a dispatch
// for which all would wait.
//
// Reference: the nodes of rule norm_gate_up, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums
// here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product own
//!axis matrices 2
//!axis input shared_row
//!axis vectors own
//!without acts == int8 && format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/gate_up.wgsl
//!include lib/residual.wgsl

struct Params {
    cols : u32,
    rows : u32,  // of each matrix
    n_tok : u32, // rows of x and y
    y_stride : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    has_branch : u32,
    post_at : u32, // in vectors, in vec4s
    next_at : u32,
    makes_ready : u32, // s is wanted
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind branch read array<vec4<f32>>
//!bind vectors read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind w2 read array<vec4<u32>>
//!bind to update array<vec4<f32>>
//!bind y update array<f32>
//!bind s update array<vec4<u32>>

fn post_of(i : u32) -> vec4<f32> {
    return vectors[p.post_at + i];
}

fn factor() -> f32 {
    return 1.0;
}

fn normed() -> bool {
    return true;
}

fn next_of(i : u32) -> vec4<f32> {
    return vectors[p.next_at + i];
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
    for (var i = 0u; i < MOST_TURNS; i++) {
        let block = turn.at + i * groups;
        if (block * R * row_groups >= p.rows) {
            break;
        }
        let first = R * (block * row_groups + id / LANES);
        let rows = four_from(first, p.rows);
        let sums = add_pair(pair_rows(rows, 0u, id % LANES), id);
        put_rows(tok, first, sums.first, sums.second, id);
        workgroupBarrier(); // before the next block's first
    }
}
