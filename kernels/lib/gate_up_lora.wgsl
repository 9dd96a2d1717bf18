// gate_up_lora - the adapters of both matrices: as lib/lora. Needs b_word(i): number i of B of the first matrix or the second, as lib/two_weights has
// it; z_of(i): number i of z = A x, of both matrices; p with rank, b_scales and z_at of each.

// Column k of B for R rows; no more are read.
fn b_rows(rows : vec4<u32>, k : u32) -> vec4<f32> {
    let at = rows + k * p.rows;
    var v = vec4<f32>(b_word(at.x), 0.0, 0.0, 0.0);
    if (R > 1u) {
        v.y = b_word(at.y);
    }
    if (R > 2u) {
        v.z = b_word(at.z);
        v.w = b_word(at.w);
    }
    return v;
}

// This lane's part of some rows, with what the adapters add.
fn adapted(mine : Pair, rows : vec4<u32>, tok : u32, lane : u32) -> Pair {
    var sum = mine;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= max(p.rank, p.rank2)) {
            break;
        }
        second = false;
        if (k < p.rank) {
            sum.first += z_of(p.z_at + tok * p.rank + k) * b_word(p.b_scales + k) * b_rows(rows, k);
        }
        second = true;
        if (k < p.rank2) {
            sum.second += z_of(p.z_at2 + tok * p.rank2 + k) * b_word(p.b_scales2 + k) * b_rows(rows, k);
        }
    }
    return sum;
}
