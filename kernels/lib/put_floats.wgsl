// put_floats - where a team's R results go: to y.
fn put_rows(tok : u32, first : u32, h : vec4<f32>, id : u32) {
    for (var r = id % LANES; r < R; r += LANES) {
        if (first + r < p.rows) {
            y[tok * p.y_stride + first + r] = h[r];
        }
    }
}
