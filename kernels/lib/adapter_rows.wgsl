// adapter_rows - what the adapters of a matrix in one buffer add to R rows of it: see lib/lora.
// Needs Params with rows and rank; z_of(k): number k of z = A x; the buffer b, in which the scales
// follow B.

// This lane's part; no more of B is read.
fn adapter_rows(rows : vec4<u32>, lane : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= p.rank) {
            break;
        }
        let at = rows + vec4<u32>(k * p.rows);
        var of_b = vec4<f32>(b[at.x], 0.0, 0.0, 0.0);
        if (R > 1u) {
            of_b.y = b[at.y];
        }
        if (R > 2u) {
            of_b.z = b[at.z];
            of_b.w = b[at.w];
        }
        sum += z_of(k) * b[p.rank * p.rows + k] * of_b;
    }
    return sum;
}
