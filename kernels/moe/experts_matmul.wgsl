// experts_matmul - y[slot] = W_e x[slot], adapters included, for the slots of experts_plan's tiles
//   (prefill)
//
//   x     read   rows of cols f32: a row a slot   grid   a workgroup per tile and 2 WG (matrix:
//                (by_slot 1), or a row a t               ROWS) rows of W_e, tiles first
//   plan  read   of experts_plan                  bytes  W_e once a tile, x once per so many rows
//   w     read   n_mat x rows x cols              needs  x_stride % 4 == 0; x finite up to 8-fold
//   z     read   n_slots x rank f32                      columns; rank 0: z and b are any buffers,
//   b     read   see lib/lora.wgsl                       unread
//   y     write  n_slots x y_stride f32
//
// The buffer holds the experts [mat0, mat0 + n_mat): y of other experts' slots stays as it is.
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
    rows : u32, // of one expert
    mat0 : u32, // first expert of this buffer
    n_mat : u32,
    n_tiles : u32,
    n_used : u32,
    by_slot : u32, // 1: x has a row for every slot
    x_stride : u32,
    y_stride : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of the adapters, see lib/lora.wgsl
    b_rows : u32,
    b_scales : u32,
}

//!include lib/experts_tile.wgsl

//!if tier == matrix
// x is what to_halves has made, weights are 1e-4 .. 65,000: halves; subgroups are of 32. Adapters
// are added to the results in f32. Tolerance 1e-6 nmse: halves are off by 2^-12 at most, sums are
// f32.
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

fn mat_rows() -> u32 {
    return p.rows;
}

fn w_row(row0 : u32, i : u32) -> u32 {
    return min(row0 + i, p.rows - 1u);
}

fn put_four(slot : u32, row : u32, v : vec4<f32>) {
    var sum = v;
    if (p.rank > 0u) {
        let rows = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(p.rows - 1u));
        sum += lora_rows(now.mat + p.mat0, rows, slot * p.rank, 0u, 1u);
    }
    for (var r = 0u; r < 4u; r++) {
        if (row + r < p.rows) {
            y[slot * p.y_stride + row + r] = sum[r];
        }
    }
}

fn put_eight(i : u32, row : u32, a : vec4<f32>, b : vec4<f32>) {
    if (i < now.n) {
        let slot = slot_of(now, i);
        let s = x_scale(row_of(slot));
        put_four(slot, row0 + row, s * a);
        put_four(slot, row0 + row + 16u, s * b);
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32, @builtin(subgroup_id) subgroup : u32) {
    let group = flat_group(wid, num);
    let first = group / p.n_tiles * ROWS;
    let tile = tile_at(group % p.n_tiles);
    if (step.rows == 0u || !tile.exists || first >= p.rows) {
        return;
    }
    now = tile;
    row0 = first;
    block_products(0u, 0u, 0u, (p.cols + 7u) / 8u, id, subgroup);
}
//!else

fn mat_rows() -> u32 {
    return p.rows;
}

// Slots i to i + 3.
fn put_slots(tile : Tile, i : u32, row : u32, v : vec4<f32>) {
    for (var c = 0u; c < 4u; c++) {
        if (i + c < tile.n && row < p.rows) {
            y[slot_of(tile, i + c) * p.y_stride + row] = v[c];
        }
    }
}

fn put_sums(tile : Tile, i : u32, row : u32, sum : Sums) {
    put_slots(tile, i, row, sum.a);
    put_slots(tile, i + 4u, row, sum.b);
    put_slots(tile, i, row + WG, sum.other_a);
    put_slots(tile, i + 4u, row + WG, sum.other_b);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    let first = group / p.n_tiles * (2u * WG);
    let tile = tile_at(group % p.n_tiles);
    if (step.rows == 0u || !tile.exists || first >= p.rows) {
        return;
    }
    let row = first + id;
    let sum = tile_products(tile, min(row, p.rows - 1u), min(row + WG, p.rows - 1u), id);
    put_sums(tile, 0u, row, sum.e0);
    put_sums(tile, 8u, row, sum.e1);
    put_sums(tile, 16u, row, sum.e2);
    put_sums(tile, 24u, row, sum.e3);
}
//!end
