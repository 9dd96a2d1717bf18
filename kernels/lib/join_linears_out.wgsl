// join_linears_out - the results of join_linears: those of each matrix in a buffer of their own.
@group(0) @binding(8) var<storage, read_write> y : array<f32>;
@group(0) @binding(9) var<storage, read_write> y2 : array<f32>;
@group(0) @binding(10) var<storage, read_write> y3 : array<f32>;

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
