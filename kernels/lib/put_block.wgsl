// put_block - results of a product, four rows of W by four rows t of a share, to where lib/linear_io.wgsl puts one.
fn put_rows(tok : u32, row : u32, split : u32, v : vec4<f32>) {
    for (var r = 0u; r < 4u; r++) {
        if (tok < p.n_tok && row + r < p.rows) {
            put(split * p.n_tok + tok, row + r, v[r]);
        }
    }
}

fn put_results(tok : u32, row : u32, split : u32, m : mat4x4<f32>) {
    put_rows(tok, row, split, m[0]);
    put_rows(tok + 1u, row, split, m[1]);
    put_rows(tok + 2u, row, split, m[2]);
    put_rows(tok + 3u, row, split, m[3]);
}
