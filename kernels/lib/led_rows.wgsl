// led_rows - the adapters of a matrix whose rows all are here: as lib/lora, of B from b_at on, behind which its scales lie. Needs z_of(k): number
// k of z = A x, for all matrices; the buffer b.

// What they add to R rows, this lane's part; no more of B is read.
fn led_rows(rows : vec4<u32>, n_rows : u32, rank : u32, b_at : u32, z_at : u32, lane : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= rank) {
            break;
        }
        let at = rows + vec4<u32>(b_at + k * n_rows);
        var of_b = vec4<f32>(b[at.x], 0.0, 0.0, 0.0);
        if (R > 1u) {
            of_b.y = b[at.y];
        }
        if (R > 2u) {
            of_b.z = b[at.z];
            of_b.w = b[at.w];
        }
        sum += z_of(z_at + k) * b[b_at + rank * n_rows + k] * of_b;
    }
    return sum;
}
