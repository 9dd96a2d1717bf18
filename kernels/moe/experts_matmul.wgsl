// experts_matmul - y[slot] = W_e x[slot], adapters included, for the slots of experts_plan's tiles
//   (prefill)
//
//   x     read   rows of cols f32: a row a slot   grid   a workgroup per tile and ROWS rows of W_e,
//                (by_slot 1), or a row a t               tiles first
//   plan  read   of experts_plan                  bytes  W_e once a tile, x once per ROWS rows of W
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
//!without tier == matrix && format == f32
//!include lib/matvec.wgsl

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
    if (!tile.exists || first >= p.rows) {
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

fn w_row(row0 : u32, i : u32) -> u32 {
    return min(row0 + i, p.rows - 1u);
}

fn put_rows(tile : Tile, i : u32, row : u32, v : vec4<f32>) {
    if (i < tile.n) {
        let at = slot_of(tile, i) * p.y_stride;
        for (var r = 0u; r < 4u; r++) {
            if (row + r < p.rows) {
                y[at + row + r] = v[r];
            }
        }
    }
}

fn put_results(tile : Tile, i : u32, row : u32, m : mat4x4<f32>) {
    put_rows(tile, i, row, m[0]);
    put_rows(tile, i + 1u, row, m[1]);
    put_rows(tile, i + 2u, row, m[2]);
    put_rows(tile, i + 3u, row, m[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    let first = group / p.n_tiles * ROWS;
    let tile = tile_at(group % p.n_tiles);
    if (!tile.exists || first >= p.rows) {
        return;
    }
    let sum = tile_products(tile, first, id);
    let at = place(id);
    if (at.row_group > 0u) {
        return;
    }
    let row = first + at.row;
    put_results(tile, at.tok, row, sum.low);
    put_results(tile, at.tok, row + ROWS / 2u, sum.high);
    put_results(tile, at.tok + TOKS / 2u, row, sum.low2);
    put_results(tile, at.tok + TOKS / 2u, row + ROWS / 2u, sum.high2);
}
//!end
