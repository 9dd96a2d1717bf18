// matmul_matrix - y[t] = scale * (W x[t] + sum of the adapters s B z[t])     (prefill: many rows t);
//   with GELU y[t] = gelu(that) * by[t][by_col ...]
//
//   x   read   of to_halves         grid   a workgroup per ROWS rows of W, TOKS rows t and share, t first
//   w   read   rows x cols          bytes  W once per TOKS rows t, x once per ROWS rows of W
//   z   read   n_tok x rank f32     needs  subgroups of 32; weights of 1e-4 .. 65,000: halves;
//   b   read   see lib/lora.wgsl           rank 0: z and b are any buffers, unread
//   by  read   n_tok rows of f32           GELU 0: by is any buffer, unread
//   y   write  n_tok x rows f32
//
// lib/matrix.wgsl says how. Adapters are added to the results in f32. With n_split > 1 every share of the columns sets an
// n_tok x rows of its own in y, one after the other, the first with what adapters add; sum_parts adds them up.
//
// Tolerance 1e-6 nmse: halves are off by 2^-12 at most, sums are f32.
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

//!include lib/grid.wgsl
//!include lib/linear_io.wgsl
//!include lib/one_weight.wgsl
//!include lib/raw_$format.wgsl
//!include lib/lora.wgsl
//!include lib/matrix.wgsl

fn w_eight(i : u32, col : u32) -> u32 {
    return min(i, p.rows - 1u) * ((p.cols + 7u) / 8u) + col;
}

fn x_row(i : u32) -> u32 {
    return min(i, p.n_tok - 1u);
}

var<private> split : u32; // which share

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
    let share = group / tok_tiles / row_tiles;
    if (share >= n_split) {
        return;
    }
    split = share;
    // A share is whole steps.
    let steps = (p.cols + 31u) / 32u;
    block_products(row0, tok0, steps * share / n_split * 4u, steps * (share + 1u) / n_split * 4u, id, subgroup);
}
