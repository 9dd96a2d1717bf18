// experts_gate_up_matmul_matrix - y[slot] = gelu(gate_e x[t]) * up_e x[t] for the slots of experts_plan's tiles
//   (prefill), adapters included
//
//   x     read   of to_halves                           grid   a workgroup per tile and ROWS / 2 columns of y,
//   plan  read   of experts_plan                               tiles first
//   w     read   n_mat x 2 n_ff x cols, gate first      bytes  W_e once a tile, x once per ROWS / 2 columns
//   z     read   n_slots x rank f32                     needs  subgroups of 32; weights of 1e-4 .. 65,000, as
//   b     read   see lib/lora.wgsl                             halves are; rank 0: z and b are any
//   y     write  n_slots x n_ff f32                            buffers, unread
//
// Of every 32 rows of a block 16 are gate's and 16 the same of up, so a thread has both of its columns. The buffer
// holds the experts [mat0, mat0 + n_mat): y of other experts' slots stays as it is.
//
// Tolerance 1e-6 nmse: halves are off by 2^-12 at most, sums are f32.
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

//!include lib/grid.wgsl
//!include lib/gelu.wgsl
//!include lib/experts_gate_up_matmul_io.wgsl

//!include lib/one_weight.wgsl
//!include lib/raw_$format.wgsl
//!include lib/lora.wgsl
//!include lib/experts_matrix.wgsl

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
    let h = gelu_tanh(with_adapters(slot, col, s * gate)) * with_adapters(slot, p.n_ff + col, s * up);
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
