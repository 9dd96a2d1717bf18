// join_gelu_owed - of a branch that may be owed something, and of more rows that are for a block further on: lib/ahead.
//!include lib/held.wgsl
//!include lib/joined_row.wgsl
//!include lib/put_ahead.wgsl
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
    n_more : u32, // rows of W after those of y
    owed_rank : u32, // see lib/owed.wgsl; then n_tok is 1
    owed_at : u32,
    owed_parts : u32,
    owed_scales : u32,
}

@group(0) @binding(8) var<storage, read> b : array<vec4<f32>>;

fn put_lacking(i : u32, v : vec4<f32>) {
    held[i] = bitcast<vec4<u32>>(v);
}

fn lacking(i : u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(held[i]);
}

// What was lacking lies where the row is kept: the sums of the join are between.
fn hold(tok : u32, id : u32, writes : bool) {
    let row = joined_row(tok, id, writes);
    if (4u * id < p.cols / 4u) {
        keep(4u * id, row.h);
    }
    workgroupBarrier();
}

fn n_rows() -> u32 {
    return p.rows + p.n_more;
}

fn put_row(tok : u32, row : u32, v : f32) {
    if (row < p.rows) {
        put_gated(tok, row, v);
    } else {
        put_ahead(row - p.rows, v);
    }
}
