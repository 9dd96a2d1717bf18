// put_floats - where a team's R results gelu(gate) up go: to y. Needs lib/gelu.
fn put_rows(tok : u32, first : u32, gate : vec4<f32>, up : vec4<f32>, id : u32) {
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = id % LANES + k * LANES;
        if (r >= R) {
            break;
        }
        if (first + r < p.rows) {
            y[tok * p.y_stride + first + r] = gelu(gate[r]) * up[r];
        }
    }
}
