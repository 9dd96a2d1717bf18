// matmul - y[t] = scale * (W x[t] + sum of the adapters s B z[t])     (prefill: many rows t);
//   with GELU y[t] = gelu(that) * by[t][by_col ...]
//
//   x   read   n_tok x cols f32     grid   a workgroup per ROWS rows of W, TOKS rows t and share, t first
//   w   read   rows x cols          bytes  W once per TOKS rows t, x once per ROWS rows of W
//   z   read   n_tok x rank f32     needs  x_stride % 4 == 0; x finite up to 8-fold columns;
//   b   read   see lib/lora.wgsl           rank 0: z and b are any buffers, unread
//   by  read   n_tok rows of f32            GELU 0: by is any buffer, unread
//   y   write  n_tok x rows f32
//
// lib/tile.wgsl says how. A block of 128 x 128 is one team of 256 threads; smaller blocks, of which there are more, are
// for matrices that would not fill the device: 64 x 64 has four teams, 32 x 32 sixteen. With n_split > 1 every share of the
// columns sets an n_tok x rows of its own in y, one after the other; sum_parts adds them up.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain lone matrix
//!without tier == matrix && format == f32
//!if tier == lone
//!include lib/matmul_lone.wgsl
//!elif tier == matrix
//!include lib/matmul_matrix.wgsl
//!else
//!include lib/grid.wgsl
//!include lib/linear_io.wgsl
//!include lib/put_block.wgsl
//!include lib/one_weight.wgsl
//!include lib/shape_$format.wgsl
//!include lib/tile.wgsl
//!include lib/lora_tile.wgsl

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
    return both(w_eight(row, col), w_eight(row, col + 1u));
}

fn x_part(i : u32, col : u32) -> Sixteen {
    let tok = min(i, p.n_tok - 1u);
    if (col + 1u < (p.cols + 7u) / 8u) {
        let at = tok * (p.x_stride / 4u) + 2u * col;
        return Sixteen(x[at], x[at + 1u], x[at + 2u], x[at + 3u]);
    }
    return both(x_eight(tok, col), x_eight(tok, col + 1u));
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
    if (split >= n_split) {
        return;
    }
    // A share is whole steps; the adapters' columns are the last one's.
    let cols = (p.cols + 7u) / 8u + lora_eights();
    let steps = (cols + step_eights() - 1u) / step_eights();
    let first = steps * split / n_split * step_eights();
    let last = min(cols, steps * (split + 1u) / n_split * step_eights());
    let mine = block_products_from(row0, tok0, first, last, p.n_tok - tok0, id);
    let sum = add_teams(mine, id);
    let at = place(id);
    if (at.team > 0u) {
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
