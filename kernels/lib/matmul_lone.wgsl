// matmul_lone - y[t] = scale * (W x[t] + sum of the adapters s B z[t])     (prefill: many rows t);
//   with GELU y[t] = gelu(that) * by[t][by_col ...]
//
//   x   read   n_tok x cols f32     grid   a thread per 8 rows of W and 8 rows t, rows of W first
//   w   read   rows x cols          bytes  W once per 8 rows t, x once per 8 rows of W
//   z   read   n_tok x rank f32     needs  x_stride % 4 == 0; x finite up to 8-fold columns;
//   b   read   see lib/lora.wgsl           rank 0: z and b are any buffers, unread
//   by  read   n_tok rows of f32            GELU 0: by is any buffer, unread
//   y   write  n_tok x rows f32            n_split 0 or 1
//
// For devices in software, whose threads wait dearly and whose memory is all the same: nobody waits, all is in registers.
//
// Tolerance 1e-10 nmse: f32 sums here, f64 there.
//!include lib/lone.wgsl
//!include lib/linear_io.wgsl
//!include lib/put_block.wgsl
//!include lib/one_weight.wgsl
//!include lib/shape_$format.wgsl

// Eight columns of four rows; each row is a column of the matrices.
struct Four {
    a : mat4x4<f32>,
    b : mat4x4<f32>,
}

fn w_four(at : vec4<u32>) -> Four {
    let r0 = eight(at.x);
    let r1 = eight(at.y);
    let r2 = eight(at.z);
    let r3 = eight(at.w);
    return Four(mat4x4<f32>(r0.a, r1.a, r2.a, r3.a), mat4x4<f32>(r0.b, r1.b, r2.b, r3.b));
}

fn x_four(at : vec4<u32>) -> Four {
    return Four(mat4x4<f32>(x[at.x], x[at.y], x[at.z], x[at.w]),
                mat4x4<f32>(x[at.x + 1u], x[at.y + 1u], x[at.z + 1u], x[at.w + 1u]));
}

fn plus_product(sum : mat4x4<f32>, w : Four, v : Four) -> mat4x4<f32> {
    return sum + transpose(w.a) * v.a + transpose(w.b) * v.b;
}

// Four rows of column k of B, scaled.
fn b_four(rows : vec4<u32>, k : u32) -> vec4<f32> {
    let at = rows + p.row0 + k * p.b_rows;
    return b[p.b_scales + k] * vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
}

fn z_four(toks : vec4<u32>, k : u32) -> vec4<f32> {
    let at = toks * p.rank + k;
    return vec4<f32>(z[at.x], z[at.y], z[at.z], z[at.w]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = lone_thread(wid, num, id);
    let row_tiles = (p.rows + 7u) / 8u;
    let row = i % row_tiles * 8u;
    let tok = i / row_tiles * 8u;
    if (tok >= p.n_tok) {
        return;
    }
    let rows0 = four_from(row, p.rows);
    let rows1 = four_from(row + 4u, p.rows);
    let toks0 = four_from(tok, p.n_tok);
    let toks1 = four_from(tok + 4u, p.n_tok);
    let eights = (p.cols + 7u) / 8u;
    var low = mat4x4<f32>(); // a column a row t
    var high = mat4x4<f32>();
    var low2 = mat4x4<f32>();
    var high2 = mat4x4<f32>();
    for (var c = 0u; c < eights; c++) {
        let w0 = w_four(rows0 * eights + c);
        let w1 = w_four(rows1 * eights + c);
        let v0 = x_four(toks0 * (p.x_stride / 4u) + 2u * c);
        low = plus_product(low, w0, v0);
        high = plus_product(high, w1, v0);
        let v1 = x_four(toks1 * (p.x_stride / 4u) + 2u * c);
        low2 = plus_product(low2, w0, v1);
        high2 = plus_product(high2, w1, v1);
    }
    for (var k = 0u; k < p.rank; k++) {
        let b0 = b_four(rows0, k);
        let b1 = b_four(rows1, k);
        let z0 = z_four(toks0, k);
        let z1 = z_four(toks1, k);
        low = plus_outer(low, b0, z0);
        high = plus_outer(high, b1, z0);
        low2 = plus_outer(low2, b0, z1);
        high2 = plus_outer(high2, b1, z1);
    }
    put_results(tok, row, 0u, low);
    put_results(tok, row + 4u, 0u, high);
    put_results(tok + 4u, row, 0u, low2);
    put_results(tok + 4u, row + 4u, 0u, high2);
}
