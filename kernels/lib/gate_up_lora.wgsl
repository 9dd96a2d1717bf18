// gate_up_lora - the adapters of both matrices: as lib/lora, with z = A x of both behind x.
@group(0) @binding(6) var<storage, read> b : array<f32>;
@group(0) @binding(7) var<storage, read> b2 : array<f32>;

fn z_of(at : u32) -> f32 {
    return x[at >> 2u][at & 3u];
}

// Column k of B for R rows; no more are read.
fn b_of(at : vec4<u32>) -> vec4<f32> {
    var v = vec4<f32>(b[at.x], 0.0, 0.0, 0.0);
    if (R > 1u) {
        v.y = b[at.y];
    }
    if (R > 2u) {
        v.z = b[at.z];
        v.w = b[at.w];
    }
    return v;
}

fn b2_of(at : vec4<u32>) -> vec4<f32> {
    var v = vec4<f32>(b2[at.x], 0.0, 0.0, 0.0);
    if (R > 1u) {
        v.y = b2[at.y];
    }
    if (R > 2u) {
        v.z = b2[at.z];
        v.w = b2[at.w];
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
        if (k < p.rank) {
            sum.first += z_of(p.z_at + tok * p.rank + k) * b[p.b_scales + k] * b_of(rows + k * p.rows);
        }
        if (k < p.rank2) {
            sum.second += z_of(p.z_at2 + tok * p.rank2 + k) * b2[p.b_scales2 + k] * b2_of(rows + k * p.rows);
        }
    }
    return sum;
}
