// matmul - y[t] = scale * (W x[t] + sum of the adapters s B z[t])     (prefill: many rows t);
//   with GELU y[t] = gelu(that) * by[t][by_col ...]
//
//   x   read   n_tok x cols f32    grid   a workgroup per ROWS rows of W, TOKS rows t and split, t
//   w   read   rows x cols                first
//   z   read   n_tok x rank f32    bytes  W once per TOKS rows t, x once per ROWS rows of W
//   b   read   see lib/lora.wgsl   needs  x_stride % 4 == 0; x finite up to 8-fold columns; rank 0:
//   by  read   n_tok rows of f32          z and b are any buffers, unread GELU 0: by is any buffer,
//   y   write  n_tok x rows f32           unread
//
// lib/tile.wgsl says how. A block of 128 x 128 is one row group of 256 threads; smaller blocks, of
// which there are more, are for matrices that would not fill the device: 64 x 64 has four row
// groups, 32 x 32 sixteen. With n_split > 1 every split of the columns sets an n_tok x rows of its
// own in y, one after the other; sum_partials adds them up.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain software matrix
//!axis product linear
//!axis matrices 1
//!axis input none
//!axis adapter given
//!axis w_major row_major
//!without tier == matrix && format == f32
//!include lib/matvec.wgsl
//!include lib/step.wgsl

// Results, four rows of W by four rows t of a split, to where lib/matvec puts one.
fn put_rows(tok : u32, row : u32, split : u32, v : vec4<f32>) {
    for (var r = 0u; r < 4u; r++) {
        if (tok < p.n_tok && row + r < p.rows) {
            put(split * p.n_tok + tok, row + r, v[r]);
        }
    }
}

fn put_results(tok : u32, row : u32, split : u32, m : mat4x4<f32>) {
    put_rows(tok, row, split, m[0]);
    put_rows(tok + 1u, row, split, m[1]);
    put_rows(tok + 2u, row, split, m[2]);
    put_rows(tok + 3u, row, split, m[3]);
}

//!if tier == software
// For devices in software, where barriers are slow and workgroup memory is no faster than other
// memory: no barriers, and everything in registers. The grid is a thread per 8 rows of W and 8 rows
// t, rows of W first; n_split is 0 or 1.
const WG : u32 = 16u;

fn plus_outer(sum : mat4x4<f32>, w : vec4<f32>, v : vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(sum[0] + w * v.x, sum[1] + w * v.y, sum[2] + w * v.z, sum[3] + w * v.w);
}

// Eight columns of four rows; each row is a column of the matrices.
struct Four {
    a : mat4x4<f32>,
    b : mat4x4<f32>,
}

fn w_four(at : vec4<u32>) -> Four {
    let r0 = eight(at.x);
    let r1 = eight(at.y);
    let r2 = eight(at.z);
    let r3 = eight(at.w);
    return Four(mat4x4<f32>(r0.a, r1.a, r2.a, r3.a), mat4x4<f32>(r0.b, r1.b, r2.b, r3.b));
}

fn x_four(at : vec4<u32>) -> Four {
    return Four(mat4x4<f32>(x[at.x], x[at.y], x[at.z], x[at.w]),
                mat4x4<f32>(x[at.x + 1u], x[at.y + 1u], x[at.z + 1u], x[at.w + 1u]));
}

fn plus_product(sum : mat4x4<f32>, w : Four, v : Four) -> mat4x4<f32> {
    return sum + transpose(w.a) * v.a + transpose(w.b) * v.b;
}

// Four rows of column k of B, scaled.
fn b_four(rows : vec4<u32>, k : u32) -> vec4<f32> {
    let at = rows + p.row0 + k * p.b_rows;
    return b[p.b_scales + k] * vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
}

fn z_four(toks : vec4<u32>, k : u32) -> vec4<f32> {
    let at = toks * p.rank + k;
    return vec4<f32>(z[at.x], z[at.y], z[at.z], z[at.w]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = single_thread(wid, num, id);
    let row_tiles = (p.rows + 7u) / 8u;
    let row = i % row_tiles * 8u;
    let tok = i / row_tiles * 8u;
    if (step.rows == 0u || tok >= p.n_tok) {
        return;
    }
    let rows0 = four_from(row, p.rows);
    let rows1 = four_from(row + 4u, p.rows);
    let toks0 = four_from(tok, p.n_tok);
    let toks1 = four_from(tok + 4u, p.n_tok);
    let eights = (p.cols + 7u) / 8u;
    var low = mat4x4<f32>(); // a column a row t
    var high = mat4x4<f32>();
    var low2 = mat4x4<f32>();
    var high2 = mat4x4<f32>();
    for (var c = 0u; c < eights; c++) {
        let w0 = w_four(rows0 * eights + c);
        let w1 = w_four(rows1 * eights + c);
        let v0 = x_four(toks0 * (p.x_stride / 4u) + 2u * c);
        low = plus_product(low, w0, v0);
        high = plus_product(high, w1, v0);
        let v1 = x_four(toks1 * (p.x_stride / 4u) + 2u * c);
        low2 = plus_product(low2, w0, v1);
        high2 = plus_product(high2, w1, v1);
    }
    for (var k = 0u; k < p.rank; k++) {
        let b0 = b_four(rows0, k);
        let b1 = b_four(rows1, k);
        let z0 = z_four(toks0, k);
        let z1 = z_four(toks1, k);
        low = plus_outer(low, b0, z0);
        high = plus_outer(high, b1, z0);
        low2 = plus_outer(low2, b0, z1);
        high2 = plus_outer(high2, b1, z1);
    }
    put_results(tok, row, 0u, low);
    put_results(tok, row + 4u, 0u, high);
    put_results(tok + 4u, row, 0u, low2);
    put_results(tok + 4u, row + 4u, 0u, high2);
}
//!elif tier == matrix
// lib/matrix.wgsl says how. x is what to_halves has made, weights are 1e-4 .. 65,000: halves;
// subgroups are of 32. Adapters are added to the results in f32, with n_split > 1 to those of the
// first split. Tolerance 1e-6 nmse: halves are off by 2^-12 at most, sums are f32.
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

//!include lib/lora.wgsl
//!include lib/matrix.wgsl

fn w_eight(i : u32, col : u32) -> u32 {
    return min(i, p.rows - 1u) * ((p.cols + 7u) / 8u) + col;
}

fn x_row(i : u32) -> u32 {
    return min(i, p.n_tok - 1u);
}

var<private> split : u32; // of this workgroup

fn put_four(tok : u32, row : u32, v : vec4<f32>) {
    var sum = v;
    if (p.rank > 0u && split == 0u) {
        let rows = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(p.rows - 1u));
        sum += lora_rows(0u, rows + p.row0, tok * p.rank, 0u, 1u);
    }
    for (var r = 0u; r < 4u; r++) {
        if (row + r < p.rows) {
            put(split * p.n_tok + tok, row + r, sum[r]);
        }
    }
}

fn put_eight(tok : u32, row : u32, a : vec4<f32>, b : vec4<f32>) {
    if (tok < p.n_tok) {
        let s = x_scale(tok);
        put_four(tok, row, s * a);
        put_four(tok, row + 16u, s * b);
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32, @builtin(subgroup_id) subgroup : u32) {
    let tok_tiles = (p.n_tok + TOKS - 1u) / TOKS;
    let group = flat_group(wid, num);
    let row_tiles = (p.rows + ROWS - 1u) / ROWS;
    let row0 = group / tok_tiles % row_tiles * ROWS;
    let tok0 = group % tok_tiles * TOKS;
    let n_split = max(p.n_split, 1u);
    let n = group / tok_tiles / row_tiles;
    if (step.rows == 0u || n >= n_split) {
        return;
    }
    split = n;
    // A split is whole steps.
    let steps = (p.cols + 31u) / 32u;
    block_products(row0, tok0, steps * n / n_split * 4u, steps * (n + 1u) / n_split * 4u,
                   id, subgroup);
}
//!else
//!include lib/tile.wgsl

// The adapters' B and z are more columns of W and x.
fn w_eight(row : u32, col : u32) -> Eight {
    let eights = (p.cols + 7u) / 8u;
    if (col < eights) {
        return eight(row * eights + col);
    }
    if (LORA == 1u && col - eights < lora_eights()) {
        return lora_eight(0u, p.row0 + row, col - eights);
    }
    return Eight();
}

fn x_eight(tok : u32, col : u32) -> Eight {
    let eights = (p.cols + 7u) / 8u;
    if (col < eights) {
        let at = tok * (p.x_stride / 4u) + 2u * col;
        return Eight(x[at], x[at + 1u]);
    }
    if (LORA == 1u && col - eights < lora_eights()) {
        return z_eight(tok * p.rank, col - eights);
    }
    return Eight();
}

fn w_part(i : u32, col : u32) -> Sixteen {
    let eights = (p.cols + 7u) / 8u;
    let row = min(i, p.rows - 1u);
    if (col + 1u < eights) {
        return sixteen(row * eights + col);
    }
    return two_eights(w_eight(row, col), w_eight(row, col + 1u));
}

fn x_part(i : u32, col : u32) -> Sixteen {
    let tok = min(i, p.n_tok - 1u);
    if (col + 1u < (p.cols + 7u) / 8u) {
        let at = tok * (p.x_stride / 4u) + 2u * col;
        return Sixteen(x[at], x[at + 1u], x[at + 2u], x[at + 3u]);
    }
    return two_eights(x_eight(tok, col), x_eight(tok, col + 1u));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let tok_tiles = (p.n_tok + TOKS - 1u) / TOKS;
    let group = flat_group(wid, num);
    let row_tiles = (p.rows + ROWS - 1u) / ROWS;
    let row0 = group / tok_tiles % row_tiles * ROWS;
    let tok0 = group % tok_tiles * TOKS;
    let split = group / tok_tiles / row_tiles;
    let n_split = max(p.n_split, 1u);
    if (step.rows == 0u || split >= n_split) {
        return;
    }
    // A split is whole steps; the adapters' columns are the last one's.
    let cols = (p.cols + 7u) / 8u + lora_eights();
    let steps = (cols + step_eights() - 1u) / step_eights();
    let first = steps * split / n_split * step_eights();
    let last = min(cols, steps * (split + 1u) / n_split * step_eights());
    let mine = block_products_from(row0, tok0, first, last, p.n_tok - tok0, id);
    let sum = add_row_groups(mine, id);
    let at = place(id);
    if (at.row_group > 0u) {
        return;
    }
    let tok = tok0 + at.tok;
    let row = row0 + at.row;
    put_results(tok, row, split, sum.low);
    put_results(tok, row + ROWS / 2u, split, sum.high);
    put_results(tok + TOKS / 2u, row, split, sum.low2);
    put_results(tok + TOKS / 2u, row + ROWS / 2u, split, sum.high2);
}
//!end
