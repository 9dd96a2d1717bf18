// gate_up_lora - the adapters of both matrices: as lib/lora, with z = A x of both behind x.
@group(0) @binding(6) var<storage, read> b : array<f32>;
@group(0) @binding(7) var<storage, read> b2 : array<f32>;

fn z_of(at : u32) -> f32 {
    return x[at >> 2u][at & 3u];
}

// This lane's part of some rows, with what the adapters add.
fn adapted(mine : Pair, rows : vec4<u32>, tok : u32, lane : u32) -> Pair {
    var sum = mine;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= p.rank) {
            break;
        }
        let at = rows + k * p.rows;
        sum.first += z_of(p.z_at + tok * p.rank + k) * b[p.b_scales + k] * vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
    }
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= p.rank2) {
            break;
        }
        let at = rows + k * p.rows;
        sum.second += z_of(p.z_at2 + tok * p.rank2 + k) * b2[p.b_scales2 + k] * vec4<f32>(b2[at.x], b2[at.y], b2[at.z], b2[at.w]);
    }
    return sum;
}
