// experts_gate_up_matmul - y[slot] = gelu(gate_e x[t]) * up_e x[t] for the slots of experts_plan's
//   tiles (prefill), adapters included
//
//   x     read   n_tok x cols f32                    grid   a workgroup per tile and WG (matrix:
//   plan  read   of experts_plan                            ROWS / 2) columns of y, tiles first
//   w     read   n_mat x 2 n_ff x cols, gate first   bytes  W_e once a tile, x once per so many
//   z     read   n_slots x rank f32                         columns
//   b     read   see lib/lora.wgsl                   needs  x_stride % 4 == 0; x finite up to
//   y     write  n_slots x n_ff f32                         8-fold columns; rank 0: z and b are any
//                                                           buffers, unread
//
// A thread has a row of gate and the same of up. The buffer holds the experts [mat0, mat0 + n_mat):
// y of other experts' slots stays as it is.
//
// Reference: experts() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain matrix
//!axis product own
//!axis matrices 1
//!axis input none
//!axis w_major row_major
//!without tier == matrix && format == f32
//!include lib/matvec.wgsl
//!include lib/step.wgsl

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
    if (step.rows == 0u || !tile.exists || first >= p.n_ff) {
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

// Slots i to i + 3.
fn put_slots(tile : Tile, i : u32, col : u32, gate : vec4<f32>, up : vec4<f32>) {
    let h = gelu_tanh(gate) * up;
    for (var c = 0u; c < 4u; c++) {
        if (i + c < tile.n && col < p.n_ff) {
            y[slot_of(tile, i + c) * p.n_ff + col] = h[c];
        }
    }
}

fn put_sums(tile : Tile, i : u32, col : u32, sum : Sums) {
    put_slots(tile, i, col, sum.a, sum.other_a);
    put_slots(tile, i + 4u, col, sum.b, sum.other_b);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    let first = group / p.n_tiles * WG;
    let tile = tile_at(group % p.n_tiles);
    if (step.rows == 0u || !tile.exists || first >= p.n_ff) {
        return;
    }
    let row = min(first + id, p.n_ff - 1u);
    let sum = tile_products(tile, row, p.n_ff + row, id);
    put_sums(tile, 0u, first + id, sum.e0);
    put_sums(tile, 8u, first + id, sum.e1);
    put_sums(tile, 16u, first + id, sum.e2);
    put_sums(tile, 24u, first + id, sum.e3);
}
//!end
