// led_rows - the adapters of one matrix, which has all its rows here: as lib/lora. Needs z_of(k): number k of z = A x; Params with rows, rank and
// b_scales; the buffer b.

// What they add to R rows, this lane's part; no more of B is read.
fn adapted(rows : vec4<u32>, lane : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= p.rank) {
            break;
        }
        let at = rows + k * p.rows;
        var of_b = vec4<f32>(b[at.x], 0.0, 0.0, 0.0);
        if (R > 1u) {
            of_b.y = b[at.y];
        }
        if (R > 2u) {
            of_b.z = b[at.z];
            of_b.w = b[at.w];
        }
        sum += z_of(k) * b[p.b_scales + k] * of_b;
    }
    return sum;
}
