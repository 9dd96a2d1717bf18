// experts_matmul_matrix - y[slot] = W_e x[slot], adapters included, for the slots of experts_plan's tiles     (prefill)
//
//   x     read   of to_halves: a row a slot             grid   a workgroup per tile and ROWS rows of W_e,
//                (by_slot 1), or a row a t                     tiles first
//   plan  read   of experts_plan                        bytes  W_e once a tile, x once per ROWS rows of W
//   w     read   n_mat x rows x cols                    needs  subgroups of 32; weights of 1e-4 .. 65,000, as
//   z     read   n_slots x rank f32                            halves are; rank 0: z and b are any
//   b     read   see lib/lora.wgsl                             buffers, unread
//   y     write  n_slots x y_stride f32
//
// The buffer holds the experts [mat0, mat0 + n_mat): y of other experts' slots stays as it is. Adapters are added to
// the results in f32.
//
// Tolerance 1e-6 nmse: halves are off by 2^-12 at most, sums are f32.
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

//!include lib/grid.wgsl
//!include lib/experts_matmul_io.wgsl

//!include lib/one_weight.wgsl
//!include lib/raw_$format.wgsl
//!include lib/lora.wgsl
//!include lib/experts_matrix.wgsl

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
