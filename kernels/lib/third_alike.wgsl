// third_alike - the third matrix has the shape of the others.
fn third_rows(rows : vec4<u32>, x_base : u32, lane : u32) -> vec4<f32> {
    return four_rows(rows, x_base, lane);
}
