// canvas_expect - sums[s][t] = shrink[t] sums[s][t] + sum of x[t][v] W[v], over the rows v of W
//   that are share s of n_split; fresh: without the sums before
//
//   x      read    n_tok x x_cols f32, what      grid   a workgroup per COLS columns of W (matrix:
//                  canvas_weigh leaves in z             ROWS), TOKS rows t and share, t first
//   w      read    rows x cols                   bytes  W once per TOKS rows t, x once per COLS
//   known  read    of canvas_weigh                      columns, sums twice
//   sums   update  n_split x n_tok x cols f32    needs  cols, x_cols % 4 == 0; x is 0 past rows
//
// The rows v are a piece of the vocabulary: chunk by chunk, sums become what the tokens' rows of
// the table add up to, each by its weight. lib/tile_columns.wgsl says how.
// Reference: expect_rows() in src/ops/ops_cpu_canvas.c. Tolerance 1e-10 nmse: f32 sums here, f64
// there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain matrix
//!axis product own
//!axis matrices 1
//!axis input none
//!axis w_major col_major
//!without tier == matrix && format == f32
//!include lib/matvec.wgsl
//!include lib/step.wgsl

struct Params {
    cols : u32,
    rows : u32, // of W that x has weights for
    n_tok : u32,
    x_cols : u32, // f32 from row to row of x
    n_split : u32,
    fresh : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind known read array<vec4<u32>>
//!bind sums update array<vec4<f32>>

fn put(tok : u32, col4 : u32, split : u32, v : vec4<f32>) {
    let n4 = p.cols / 4u;
    if (tok >= p.n_tok || col4 >= n4) {
        return;
    }
    let at = (split * p.n_tok + tok) * n4 + col4;
    if (p.fresh == 0u) {
        sums[at] = bitcast<f32>(known[2u * tok].w) * sums[at] + v;
    } else {
        sums[at] = v;
    }
}

//!if tier == matrix
// x is what canvas_weigh leaves in h: x_cols halves a row, whole steps of 32, and 16 bytes. Weights
// of W are 1e-4 .. 65,000: halves; subgroups are of 32. Tolerance 1e-6 nmse: halves are off by
// 2^-12 at most, sums are f32.
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

//!include lib/matrix.wgsl

fn depth() -> u32 {
    return p.x_cols;
}

fn w_eight(row : u32, col : u32) -> u32 {
    return min(row, p.rows - 1u) * ((p.cols + 7u) / 8u) + col;
}

fn x_row(i : u32) -> u32 {
    return min(i, p.n_tok - 1u);
}

var<private> split : u32; // of this workgroup

fn put_eight(tok : u32, col : u32, a : vec4<f32>, b : vec4<f32>) {
    let s = x_scale(min(tok, p.n_tok - 1u));
    put(tok, col / 4u, split, s * a);
    put(tok, col / 4u + 4u, split, s * b);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32, @builtin(subgroup_id) subgroup : u32) {
    let tok_tiles = (p.n_tok + TOKS - 1u) / TOKS;
    let col_tiles = (p.cols + ROWS - 1u) / ROWS;
    let group = flat_group(wid, num);
    let tok0 = group % tok_tiles * TOKS;
    let col0 = group / tok_tiles % col_tiles * ROWS;
    let n = group / tok_tiles / col_tiles;
    if (step.rows == 0u || n >= p.n_split) {
        return;
    }
    split = n;
    let steps = (p.rows + 31u) / 32u;
    block_products(col0, tok0, steps * n / p.n_split * 4u, steps * (n + 1u) / p.n_split * 4u, id,
                   subgroup);
}
//!else
//!include lib/tile_columns.wgsl

fn w_part(row : u32, col : u32) -> Eight {
    let eights = (p.cols + 7u) / 8u;
    if (col >= eights || row >= p.rows) {
        return Eight();
    }
    return eight(row * eights + col);
}

fn x_four(tok : u32, row : u32) -> vec4<f32> {
    if (row >= p.rows) {
        return vec4<f32>();
    }
    return x[(tok * p.x_cols + row) / 4u];
}

fn x_part(i : u32, row : u32) -> Eight {
    let tok = min(i, p.n_tok - 1u);
    return Eight(x_four(tok, row), x_four(tok, row + 4u));
}

fn put_rows(tok : u32, col4 : u32, split : u32, m : mat4x4<f32>) {
    put(tok, col4, split, m[0]);
    put(tok + 1u, col4, split, m[1]);
    put(tok + 2u, col4, split, m[2]);
    put(tok + 3u, col4, split, m[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let tok_tiles = (p.n_tok + TOKS - 1u) / TOKS;
    let col_tiles = (p.cols + COLS - 1u) / COLS;
    let group = flat_group(wid, num);
    let tok0 = group % tok_tiles * TOKS;
    let col0 = group / tok_tiles % col_tiles * COLS;
    let split = group / tok_tiles / col_tiles;
    if (step.rows == 0u || split >= p.n_split) {
        return;
    }
    let steps = (p.rows + step_rows() - 1u) / step_rows();
    let sum = column_products(tok0, col0, steps * split / p.n_split,
                              steps * (split + 1u) / p.n_split, id);
    let at = place(id);
    let col4 = col0 / 4u + at.col4;
    let tok = tok0 + 4u * at.tok4;
    put_rows(tok, col4, split, sum.low);
    put_rows(tok, col4 + COLS / 8u, split, sum.high);
    put_rows(tok + TOKS / 2u, col4, split, sum.low2);
    put_rows(tok + TOKS / 2u, col4 + COLS / 8u, split, sum.high2);
}
//!end
