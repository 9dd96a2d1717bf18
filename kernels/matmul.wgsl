// matmul - y[t] = W x[t], or y[t] += scale * W x[t]     (prefill: many rows t)
//
//   x  read    n_tok x cols f32     grid   one workgroup per 64 rows of W and 64 rows t, the t of a W first
//   w  read    rows x cols          bytes  W once per 64 rows t, x once per 64 rows of W
//   y  update  n_tok x rows f32     needs  x finite up to a multiple of 8 columns
//
// In steps of 32 columns: 64 x 32 weights are decoded to workgroup memory beside 64 x 32 activations,
// and each of 256 threads adds to its 4 x 4 results. The vec4 c of row r lies in column c ^ (r % 8), so
// that the 16 rows which neighbouring threads read are in different banks.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 sums here, f64 there.

//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/grid.wgsl
//!include lib/linear_io.wgsl
//!include lib/shape_$SHAPE.wgsl

var<workgroup> w_tile : array<vec4<f32>, 512>;
var<workgroup> x_tile : array<vec4<f32>, 512>;

fn place(r : u32, c : u32) -> u32 {
    return 8u * r + (c ^ (r & 7u));
}

// Four rows of W, transposed: column k of them in one vec4.
fn w_columns(r : u32, c : u32) -> mat4x4<f32> {
    return transpose(mat4x4<f32>(w_tile[place(r, c)], w_tile[place(r + 16u, c)], w_tile[place(r + 32u, c)],
                                 w_tile[place(r + 48u, c)]));
}

// In this order every term is one fused multiply-add.
fn plus_product(sum : vec4<f32>, m : mat4x4<f32>, v : vec4<f32>) -> vec4<f32> {
    return sum + m[0] * v.x + m[1] * v.y + m[2] * v.z + m[3] * v.w;
}

fn put4(tok : u32, row : u32, v : vec4<f32>) {
    for (var i = 0u; i < 4u; i++) {
        if (tok < p.n_tok && row + 16u * i < p.rows) {
            put(tok, row + 16u * i, v[i]);
        }
    }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let tok_tiles = (p.n_tok + 63u) / 64u;
    let group = flat_group(wid, num);
    let row0 = group / tok_tiles * 64u;
    let tok0 = group % tok_tiles * 64u;
    if (row0 >= p.rows) {
        return;
    }
    // As a loader: eight columns of one row of each tile.
    let load_row = id / 4u;
    let load_col = id % 4u;
    let eights = (p.cols + 7u) / 8u;
    let w_row = min(row0 + load_row, p.rows - 1u) * eights;
    let x_row = min(tok0 + load_row, p.n_tok - 1u) * (p.x_stride / 4u);
    let at_a = place(load_row, 2u * load_col);
    let at_b = place(load_row, 2u * load_col + 1u);
    // As a worker: rows r, r + 16, r + 32, r + 48 of W and the same of t.
    let r = id % 16u;
    let t = id / 16u;

    var s0 = vec4<f32>();
    var s1 = vec4<f32>();
    var s2 = vec4<f32>();
    var s3 = vec4<f32>();
    for (var first = 0u; first < eights; first += 4u) {
        let col = first + load_col;
        var e = Eight();
        var v = Eight();
        if (col < eights) {
            e = eight(w_row + col);
            v = Eight(x[x_row + 2u * col], x[x_row + 2u * col + 1u]);
        }
        w_tile[at_a] = e.a;
        w_tile[at_b] = e.b;
        x_tile[at_a] = v.a;
        x_tile[at_b] = v.b;
        workgroupBarrier();
        for (var c = 0u; c < 8u; c++) {
            let m = w_columns(r, c);
            s0 = plus_product(s0, m, x_tile[place(t, c)]);
            s1 = plus_product(s1, m, x_tile[place(t + 16u, c)]);
            s2 = plus_product(s2, m, x_tile[place(t + 32u, c)]);
            s3 = plus_product(s3, m, x_tile[place(t + 48u, c)]);
        }
        workgroupBarrier();
    }
    put4(tok0 + t, row0 + r, s0);
    put4(tok0 + t + 16u, row0 + r, s1);
    put4(tok0 + t + 32u, row0 + r, s2);
    put4(tok0 + t + 48u, row0 + r, s3);
}
