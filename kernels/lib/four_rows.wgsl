// four_rows - a lane's part of four products: every LANES-th unit of four rows of W times a row of
// x, so that an activation in a register is used four times. Needs lib/dot_<shape> and lib/lanes.
fn four_rows(rows : vec4<u32>, x_base : u32, lane : u32) -> vec4<f32> {
    let units = (p.cols + UNIT - 1u) / UNIT;
    let at = rows * units;
    var sum = vec4<f32>();
    for (var u = lane; u < units; u += LANES) {
        let v = acts(x_base, u);
        sum += vec4<f32>(unit_dot(at.x + u, v), unit_dot(at.y + u, v), unit_dot(at.z + u, v),
                         unit_dot(at.w + u, v));
    }
    return sum;
}
