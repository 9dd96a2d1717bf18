// four_rows - a lane's part of R products, at most four: every LANES-th unit of so many rows of W times a row of x, so that
// an activation in a register is used R times. Needs quant/<format> and lib/lanes.

//!include lib/base.wgsl

fn unit_dots(at : vec4<u32>, u : u32, v : Acts) -> vec4<f32> {
    var dots = vec4<f32>(unit_dot(at.x, u, v), 0.0, 0.0, 0.0);
    if (R > 1u) {
        dots.y = unit_dot(at.y, u, v);
    }
    if (R > 2u) {
        dots.z = unit_dot(at.z, u, v);
    }
    if (R > 3u) {
        dots.w = unit_dot(at.w, u, v);
    }
    return dots;
}

fn four_rows(rows : vec4<u32>, x_base : u32, lane : u32) -> vec4<f32> {
    let units = (p.cols + UNIT - 1u) / UNIT;
    let at = rows * units;
    var sum = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let u = lane + turn * LANES;
        if (u >= units) {
            break;
        }
        sum += unit_dots(at, u, acts(x_base, u));
    }
    return sum;
}
