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

// Columns k of both, with their scales.
struct PairColumn {
    first : vec4<f32>,
    second : vec4<f32>,
    scales : vec2<f32>,
}

fn pair_column(rows : vec4<u32>, k : u32) -> PairColumn {
    var c = PairColumn();
    second = false;
    if (k < p.rank) {
        c.first = b_rows(rows, k);
        c.scales.x = b_word(p.b_scales + k);
    }
    second = true;
    if (k < p.rank2) {
        c.second = b_rows(rows, k);
        c.scales.y = b_word(p.b_scales2 + k);
    }
    return c;
}

// A lane's first columns, which can be on their way while the matrices are multiplied.
fn begin_adapted(rows : vec4<u32>, lane : u32) -> PairColumn {
    return pair_column(rows, lane);
}

fn add_column(sum : Pair, c : PairColumn, tok : u32, k : u32) -> Pair {
    var out = sum;
    if (k < p.rank) {
        out.first += z_of(p.z_at + tok * p.rank + k) * c.scales.x * c.first;
    }
    if (k < p.rank2) {
        out.second += z_of(p.z_at2 + tok * p.rank2 + k) * c.scales.y * c.second;
    }
    return out;
}

// This lane's part of some rows, with what the adapters add.
fn adapted(mine : Pair, begun : PairColumn, rows : vec4<u32>, tok : u32, lane : u32) -> Pair {
    var sum = add_column(mine, begun, tok, lane);
    for (var turn = 1u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= max(p.rank, p.rank2)) {
            break;
        }
        sum = add_column(sum, pair_column(rows, k), tok, k);
    }
    return sum;
}
