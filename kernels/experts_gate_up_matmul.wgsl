// experts_gate_up_matmul - y[slot] = gelu(gate_e x[t]) * up_e x[t] for the slots of experts_plan's tiles
//   (prefill), adapters included
//
//   x     read   n_tok x cols f32                       grid   a workgroup per tile and ROWS / 2 columns of y,
//   plan  read   of experts_plan                               tiles first
//   w     read   n_mat x 2 n_ff x cols, gate first      bytes  W_e once a tile, x once per ROWS / 2 columns
//   z     read   n_slots x rank f32                     needs  x_stride % 4 == 0; x finite up to 8-fold
//   b     read   see lib/lora.wgsl                             columns; rank 0: z and b are any buffers,
//   y     write  n_slots x n_ff f32                            unread
//
// A block's rows of W are half of gate and the same half of up, so a thread has both of its columns. The buffer holds
// the experts [mat0, mat0 + n_mat): y of other experts' slots stays as it is.
//
// Reference: experts() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain matrix
//!without tier == matrix && format == f32
//!if tier == matrix
//!include lib/experts_gate_up_matmul_matrix.wgsl
//!else
//!include lib/grid.wgsl
//!include lib/gelu.wgsl
//!include lib/experts_gate_up_matmul_io.wgsl

//!include lib/one_weight.wgsl
//!include lib/shape_$format.wgsl
//!include lib/experts_tile.wgsl

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
    if (at.team > 0u) {
        return;
    }
    put_results(tile, at.tok, first + at.row, sum.low, sum.high);
    put_results(tile, at.tok + TOKS / 2u, first + at.row, sum.low2, sum.high2);
}
//!end
