// join_gelu_bare - of a branch that is whole.
//!include lib/hold.wgsl
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

fn n_rows() -> u32 {
    return p.rows;
}

fn put_row(tok : u32, row : u32, v : f32) {
    put_gated(tok, row, v);
}
