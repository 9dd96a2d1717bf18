// experts_gate_up_matmul - y[slot] = gelu(gate_e x[t]) * up_e x[t] for the slots of experts_plan's
//   tiles (prefill), adapters included
//
//   x     read   n_tok x cols f32                    grid   a workgroup per tile and ROWS / 2
//   plan  read   of experts_plan                            columns of y, tiles first
//   w     read   n_mat x 2 n_ff x cols, gate first   bytes  W_e once a tile, x once per ROWS / 2
//   z     read   n_slots x rank f32                         columns
//   b     read   see lib/lora.wgsl                   needs  x_stride % 4 == 0; x finite up to
//   y     write  n_slots x n_ff f32                         8-fold columns; rank 0: z and b are any
//                                                           buffers, unread
//
// A block's rows of W are half of gate and the same half of up, so a thread has both of its
// columns. The buffer holds the experts [mat0, mat0 + n_mat): y of other experts' slots stays as it
// is.
//
// Reference: experts() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain matrix
//!axis product own
//!axis matrices 1
//!axis input none
//!without tier == matrix && format == f32
//!include lib/matvec.wgsl

struct Params {
    cols : u32,
    n_ff : u32, // rows of gate, and of up
    mat0 : u32, // first expert of this buffer
    n_mat : u32,
    n_tiles : u32,
    n_used : u32,
    by_slot : u32, // 1: x has a row for every slot
    x_stride : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of the adapters, see lib/lora.wgsl
    b_rows : u32,
    b_scales : u32,
}

//!include lib/experts_tile.wgsl

//!if tier == matrix
// x is what to_halves has made, weights are 1e-4 .. 65,000: halves; subgroups are of 32. Of every
// 32 rows of a block 16 are gate's and 16 the same of up, so a thread has both of its columns.
// Tolerance 1e-6 nmse: halves are off by 2^-12 at most, sums are f32.
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

fn mat_rows() -> u32 {
    return 2u * p.n_ff;
}

fn w_row(row0 : u32, i : u32) -> u32 {
    return i % 32u / 16u * p.n_ff + min(row0 + i / 32u * 16u + i % 16u, p.n_ff - 1u);
}

fn with_adapters(slot : u32, row : u32, v : vec4<f32>) -> vec4<f32> {
    if (p.rank == 0u) {
        return v;
    }
    let rows = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(2u * p.n_ff - 1u));
    return v + lora_rows(now.mat + p.mat0, rows, slot * p.rank, 0u, 1u);
}

fn put_eight(i : u32, row : u32, gate : vec4<f32>, up : vec4<f32>) {
    if (i >= now.n) {
        return;
    }
    let slot = slot_of(now, i);
    let s = x_scale(row_of(slot));
    let col = row0 + row / 32u * 16u + row % 16u;
    let h = gelu_tanh(with_adapters(slot, col, s * gate)) *
        with_adapters(slot, p.n_ff + col, s * up);
    for (var c = 0u; c < 4u; c++) {
        if (col + c < p.n_ff) {
            y[slot * p.n_ff + col + c] = h[c];
        }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32, @builtin(subgroup_id) subgroup : u32) {
    let group = flat_group(wid, num);
    let first = group / p.n_tiles * (ROWS / 2u);
    let tile = tile_at(group % p.n_tiles);
    if (!tile.exists || first >= p.n_ff) {
        return;
    }
    now = tile;
    row0 = first;
    block_products(0u, 0u, 0u, (p.cols + 7u) / 8u, id, subgroup);
}
//!else

fn mat_rows() -> u32 {
    return 2u * p.n_ff;
}

fn w_row(row0 : u32, i : u32) -> u32 {
    return i / (ROWS / 2u) * p.n_ff + min(row0 + i % (ROWS / 2u), p.n_ff - 1u);
}

fn put_columns(tile : Tile, i : u32, col : u32, gate : vec4<f32>, up : vec4<f32>) {
    if (i < tile.n) {
        let at = slot_of(tile, i) * p.n_ff;
        let h = gelu_tanh(gate) * up;
        for (var c = 0u; c < 4u; c++) {
            if (col + c < p.n_ff) {
                y[at + col + c] = h[c];
            }
        }
    }
}

fn put_results(tile : Tile, i : u32, col : u32, gate : mat4x4<f32>, up : mat4x4<f32>) {
    put_columns(tile, i, col, gate[0], up[0]);
    put_columns(tile, i + 1u, col, gate[1], up[1]);
    put_columns(tile, i + 2u, col, gate[2], up[2]);
    put_columns(tile, i + 3u, col, gate[3], up[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    let first = group / p.n_tiles * (ROWS / 2u);
    let tile = tile_at(group % p.n_tiles);
    if (!tile.exists || first >= p.n_ff) {
        return;
    }
    let sum = tile_products(tile, first, id);
    let at = place(id);
    if (at.row_group > 0u) {
        return;
    }
    put_results(tile, at.tok, first + at.row, sum.low, sum.high);
    put_results(tile, at.tok + TOKS / 2u, first + at.row, sum.low2, sum.high2);
}
//!end
