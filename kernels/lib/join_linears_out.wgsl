// join_linears_out - the results of join_linears: those of each matrix in a buffer of their own.
//!bind y update array<f32>
//!bind y2 update array<f32>
//!bind y3 update array<f32>

fn normed() -> bool {
    return true;
}

fn put(tok : u32, row : u32, v : f32) {
    if (which == 0u) {
        y[tok * p.rows + row] = v;
    } else if (which == 1u) {
        y2[tok * p.rows2 + row] = v;
    } else {
        y3[tok * p.rows3 + row] = v;
    }
}
