// gate_up_digits_lora - y[t] = gelu(gate x[t] + s B z[t]) * (up x[t] + s B2 z2[t])     (decode: one or a few rows t)
//
//   x   read   n_tok x cols, settled   grid   each t in turn: a workgroup per R WG / LANES rows
//   w   read   gate, rows x cols       bytes  both matrices once a row t; x comes from the cache
//   w2  read   up, as w                needs  cols % 16 == 0; both matrices in one shape, whole; where p.settles
//   y   write  n_tok x rows f32               rows % 16 == 0 and R WG / LANES % 16 == 0, else s is any buffer,
//   s   write  y, settled                     unwritten
//   b   read   see lib/lora.wgsl; any buffer where the matrix has no adapter
//   b2  read   the same
//
// Behind x lies z = A x of all adapters: n_tok x rank f32 for each matrix that has such.
// As gate_up_digits, for matrices of which at least one has adapters.
//
// Reference: gate_up() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!without format in f32 f16 bf16
//!include lib/two_weights.wgsl
//!include lib/one_settled.wgsl
//!include lib/digits.wgsl
//!include quant/$format.wgsl
//!include lib/lanes.wgsl
//!include lib/put_settled.wgsl
//!include lib/gate_up.wgsl

fn b_word(i : u32) -> f32 {
    if (second) {
        return b2[i];
    }
    return b[i];
}

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

fn z_of(at : u32) -> f32 {
    return x[at >> 2u][at & 3u];
}

//!bind s update array<vec4<u32>>
//!bind b read array<f32>
//!bind b2 read array<f32>
