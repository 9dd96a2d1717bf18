// pair_rows - four_rows of two matrices in one loop, so that the loads of both are on their way together. Needs
// lib/two_weights.
//!include lib/four_rows.wgsl

struct Pair {
    first : vec4<f32>,
    second : vec4<f32>,
}

fn pair_rows(rows : vec4<u32>, x_base : u32, lane : u32) -> Pair {
    let units = (p.cols + UNIT - 1u) / UNIT;
    let at = rows * units;
    var sum = Pair();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let u = lane + turn * LANES;
        if (u >= units) {
            break;
        }
        let v = acts(x_base, u);
        second = false;
        sum.first += unit_dots(at, u, v);
        second = true;
        sum.second += unit_dots(at, u, v);
    }
    return sum;
}

// Every lane learns the sums of its team.
fn add_pair(mine : Pair, id : u32) -> Pair {
    if (R == 1u) {
        let both = add_some(vec4<f32>(mine.first.x, mine.second.x, 0.0, 0.0), 2u, id, LANES);
        return Pair(vec4<f32>(both.x, 0.0, 0.0, 0.0), vec4<f32>(both.y, 0.0, 0.0, 0.0));
    }
    if (R == 2u) {
        let both = add_some(vec4<f32>(mine.first.xy, mine.second.xy), 4u, id, LANES);
        return Pair(vec4<f32>(both.xy, 0.0, 0.0), vec4<f32>(both.zw, 0.0, 0.0));
    }
    let first = add_lanes(mine.first, id);
    workgroupBarrier(); // before the second sum
    return Pair(first, add_lanes(mine.second, id));
}
