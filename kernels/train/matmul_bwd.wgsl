// matmul_bwd - dx[t] += W' dy[t] + sum of the adapters s A' u[t], with u = B' dy     (training:
//   many rows t)
//
//   dy  read    n_tok x dy_stride f32   grid   a workgroup per COLS columns of W and TOKS rows t
//   w   read    rows x cols                    and share of W's rows, t first, shares last
//   u   read    n_tok x rank f32        bytes  W once per TOKS rows t, dy once per COLS columns
//   a   read    rank x cols f32, rows   needs  cols, row0, dy_stride % 4 == 0; dy finite past rows;
//               of whole eights                rank % 8 == 0; rank 0: u, a, s are any buffers,
//   s   read    rank f32 at s_at               unread
//   dx  update  n_tok x cols f32
//
// The buffer holds the rows [row0, row0 + rows) of W, which meet the columns row0 ... of dy. With
// n_split > 1 each share of the rows is set, not added, in an n_tok x cols of its own in dx;
// sum_partials adds them up.
//
// lib/tile_columns.wgsl says how.
//
// Reference: linear_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain software
//!axis product own
//!axis matrices 1
//!axis input none
//!include lib/matvec.wgsl

struct Params {
    cols : u32,
    rows : u32, // of W in this buffer
    row0 : u32, // which rows of the whole W they are
    n_tok : u32,
    dy_stride : u32, // f32 from row to row
    n_split : u32,   // shares of the rows
    fresh : u32,     // 1: dx is set, not added to
    scales : u32,    // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of all adapters, see lib/lora.wgsl
    s_at : u32, // where their scales begin
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind dy read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind u read array<vec4<f32>>
//!bind a read array<vec4<f32>>
//!bind s read array<f32>
//!bind dx update array<vec4<f32>>

fn scales4(at : u32) -> vec4<f32> {
    return vec4<f32>(s[at], s[at + 1u], s[at + 2u], s[at + 3u]);
}

//!if tier == software
// For devices in software, as in matmul. The grid is a thread per 8 columns of W and 8 rows t,
// columns first; n_split is 1. An iteration takes four rows of W.
const WG : u32 = 16u;

// Results of a thread: rows t are the columns.
struct Block {
    low : mat4x4<f32>,  // columns 0 .. 3 of the eight
    high : mat4x4<f32>, // columns 4 .. 7
    low2 : mat4x4<f32>, // rows t + 4 ..
    high2 : mat4x4<f32>,
}

// low and high: the eight columns of four rows k, each a column; f and f2: their factors, a column
// a row t.
fn plus_rows(sum : Block, low : mat4x4<f32>, high : mat4x4<f32>, f : mat4x4<f32>,
             f2 : mat4x4<f32>) -> Block {
    return Block(sum.low + low * f, sum.high + high * f, sum.low2 + low * f2,
                 sum.high2 + high * f2);
}

// The factors of rows k .. k + 3 of W; `is` is 0 for those that are not there.
fn dy_four(toks : vec4<u32>, k : u32, is : vec4<f32>) -> mat4x4<f32> {
    let at = (toks * p.dy_stride + p.row0 + k) / 4u;
    return mat4x4<f32>(dy[at.x] * is, dy[at.y] * is, dy[at.z] * is, dy[at.w] * is);
}

fn u_four(toks : vec4<u32>, k : u32) -> mat4x4<f32> {
    let at = (toks * p.rank + k) / 4u;
    let by = scales4(p.s_at + k);
    return mat4x4<f32>(u[at.x] * by, u[at.y] * by, u[at.z] * by, u[at.w] * by);
}

fn put(tok : u32, col4 : u32, v : vec4<f32>) {
    if (tok < p.n_tok && col4 < p.cols / 4u) {
        let at = tok * (p.cols / 4u) + col4;
        if (p.fresh == 0u) {
            dx[at] += v;
        } else {
            dx[at] = v;
        }
    }
}

fn put_four(tok : u32, col4 : u32, m : mat4x4<f32>) {
    put(tok, col4, m[0]);
    put(tok + 1u, col4, m[1]);
    put(tok + 2u, col4, m[2]);
    put(tok + 3u, col4, m[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = single_thread(wid, num, id);
    let eights = (p.cols + 7u) / 8u;
    let col = i % eights;
    let tok = i / eights * 8u;
    if (tok >= p.n_tok) {
        return;
    }
    let toks = four_from(tok, p.n_tok);
    let toks2 = four_from(tok + 4u, p.n_tok);
    var sum = Block();
    for (var k = 0u; k < p.rows; k += 4u) {
        let at = four_from(k, p.rows) * eights + col;
        let r0 = eight(at.x);
        let r1 = eight(at.y);
        let r2 = eight(at.z);
        let r3 = eight(at.w);
        let is = below(k, p.rows);
        sum = plus_rows(sum, mat4x4<f32>(r0.a, r1.a, r2.a, r3.a),
                        mat4x4<f32>(r0.b, r1.b, r2.b, r3.b), dy_four(toks, k, is),
                        dy_four(toks2, k, is));
    }
    for (var k = 0u; k < p.rank; k += 4u) {
        let at = 2u * (vec4<u32>(k, k + 1u, k + 2u, k + 3u) * eights + col);
        sum = plus_rows(sum, mat4x4<f32>(a[at.x], a[at.y], a[at.z], a[at.w]),
                        mat4x4<f32>(a[at.x + 1u], a[at.y + 1u], a[at.z + 1u], a[at.w + 1u]),
                        u_four(toks, k), u_four(toks2, k));
    }
    put_four(tok, 2u * col, sum.low);
    put_four(tok, 2u * col + 1u, sum.high);
    put_four(tok + 4u, 2u * col, sum.low2);
    put_four(tok + 4u, 2u * col + 1u, sum.high2);
}
//!else

//!include lib/tile_columns.wgsl

// The adapters' rows of A follow those of W, from a whole step on.
fn rows_of_steps() -> u32 {
    return (p.rows + step_rows() - 1u) / step_rows() * step_rows();
}

fn w_part(row : u32, col : u32) -> Eight {
    let eights = (p.cols + 7u) / 8u;
    let padded = rows_of_steps();
    if (col >= eights) {
        return Eight();
    }
    if (row < p.rows) {
        return eight(row * eights + col);
    }
    if (row >= padded && row - padded < p.rank) {
        let at = 2u * ((row - padded) * eights + col);
        return Eight(a[at], a[at + 1u]);
    }
    return Eight();
}

fn factors(tok : u32, row : u32) -> vec4<f32> {
    let padded = rows_of_steps();
    if (row < p.rows) {
        return dy[(tok * p.dy_stride + p.row0 + row) / 4u];
    }
    if (row >= padded && row - padded < p.rank) {
        let k = row - padded;
        return u[(tok * p.rank + k) / 4u] * scales4(p.s_at + k);
    }
    return vec4<f32>();
}

fn x_part(i : u32, row : u32) -> Eight {
    let tok = min(i, p.n_tok - 1u);
    return Eight(factors(tok, row), factors(tok, row + 4u));
}

fn put(tok : u32, col4 : u32, split : u32, v : vec4<f32>) {
    let n4 = p.cols / 4u;
    if (tok >= p.n_tok || col4 >= n4) {
        return;
    }
    if (p.fresh == 0u) {
        dx[tok * n4 + col4] += v;
    } else {
        dx[(split * p.n_tok + tok) * n4 + col4] = v;
    }
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
    if (split >= p.n_split) {
        return;
    }
    // Whole steps; the adapters' rows belong to the last share.
    let steps = rows_of_steps() / step_rows();
    let extra =
        select(0u, (p.rank + step_rows() - 1u) / step_rows(), split + 1u == p.n_split);
    let sum = column_products(tok0, col0, steps * split / p.n_split,
                              steps * (split + 1u) / p.n_split + extra, id);
    let at = place(id);
    let col4 = col0 / 4u + at.col4;
    let tok = tok0 + 4u * at.tok4;
    put_rows(tok, col4, split, sum.low);
    put_rows(tok, col4 + COLS / 8u, split, sum.high);
    put_rows(tok + TOKS / 2u, col4, split, sum.low2);
    put_rows(tok + TOKS / 2u, col4 + COLS / 8u, split, sum.high2);
}
//!end
