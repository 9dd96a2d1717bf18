// matmul - y[t] = scale * (W x[t] + sum of the adapters s B z[t])     (prefill: many rows t);
//   with GELU y[t] = gelu(that) * by[t][by_col ...]
//
//   x   read   n_tok x cols f32     grid   a workgroup per 64 rows of W and 64 rows t, t first
//   w   read   rows x cols          bytes  W once per 64 rows t, x once per 64 rows of W
//   z   read   n_tok x rank f32     needs  x_stride % 4 == 0; x finite up to 8-fold columns;
//   b   read   see lib/lora.wgsl           rank 0: z and b are any buffers, unread
//   by  read   n_tok rows of f32            GELU 0: by is any buffer, unread
//   y   write  n_tok x rows f32
//
// In steps of 32 columns: 64 x 32 weights are decoded to workgroup memory beside 64 x 32
// activations, and each of 64 threads adds to its 8 x 8 results: 16 loads for 256 multiply-adds.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/grid.wgsl
//!include lib/linear_io.wgsl
//!include lib/one_weight.wgsl
//!include lib/shape_$SHAPE.wgsl
//!include lib/tile.wgsl
//!include lib/lora_tile.wgsl

fn put_column(tok : u32, row : u32, v : vec4<f32>) {
    for (var i = 0u; i < 4u; i++) {
        if (tok < p.n_tok && row + 8u * i < p.rows) {
            put(tok, row + 8u * i, v[i]);
        }
    }
}

fn put_block(tok : u32, row : u32, v : mat4x4<f32>) {
    put_column(tok, row, v[0]);
    put_column(tok + 8u, row, v[1]);
    put_column(tok + 16u, row, v[2]);
    put_column(tok + 24u, row, v[3]);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let tok_tiles = (p.n_tok + 63u) / 64u;
    let group = flat_group(wid, num);
    let row0 = group / tok_tiles * 64u;
    let tok0 = group % tok_tiles * 64u;
    if (row0 >= p.rows) {
        return;
    }
    let eights = (p.cols + 7u) / 8u;
    // As a worker: rows r, r + 8, ... of W and rows t, t + 8, ... of x.
    let r = id % 8u;
    let t = id / 8u;

    var s00 = mat4x4<f32>();
    var s01 = mat4x4<f32>();
    var s10 = mat4x4<f32>();
    var s11 = mat4x4<f32>();
    // The adapters' B and z are more columns of W and x.
    for (var first = 0u; first < eights + lora_eights(); first += 4u) {
        // As a loader: eight columns of four rows of each tile.
        let part = id % 4u;
        let col = first + part;
        for (var i = 0u; i < 4u; i++) {
            let row = id / 4u + 16u * i;
            var e = Eight();
            var v = Eight();
            let w_row = min(row0 + row, p.rows - 1u);
            let tok = min(tok0 + row, p.n_tok - 1u);
            if (col < eights) {
                let at = tok * (p.x_stride / 4u) + 2u * col;
                e = eight(w_row * eights + col);
                v = Eight(x[at], x[at + 1u]);
            } else if (LORA == 1u && col - eights < lora_eights()) {
                e = lora_eight(0u, p.row0 + w_row, col - eights);
                v = z_eight(tok * p.rank, col - eights);
            }
            put_w(row, part, e);
            put_x(row, part, v);
        }
        workgroupBarrier();
        for (var c = 0u; c < 8u; c++) {
            let w0 = w_columns(r, c);
            let w1 = w_columns(r + 32u, c);
            let x0 = x_rows(t, c);
            s00 = plus_product(s00, w0, x0);
            s10 = plus_product(s10, w1, x0);
            let x1 = x_rows(t + 32u, c);
            s01 = plus_product(s01, w0, x1);
            s11 = plus_product(s11, w1, x1);
        }
        workgroupBarrier();
    }
    put_block(tok0 + t, row0 + r, s00);
    put_block(tok0 + t, row0 + r + 32u, s10);
    put_block(tok0 + t + 32u, row0 + r, s01);
    put_block(tok0 + t + 32u, row0 + r + 32u, s11);
}
