// lora_in_lone - z[t] = M (m * x)[t], where M has few rows: A, or B turned; DROP 0: m is 1     (training)
//
//   x  read   n_tok x cols f32       grid   a thread per 4 rows t and 8 rows of M, t first
//   m  read   rows of stride f32     bytes  M once per 4 rows t, x once per 8 rows of M
//   z  write  n_tok x z_stride f32   needs  cols, stride % 4 == 0; rank % 8 == 0
//
// For devices in software, as matmul.lone. The rows of M from `at` on give the columns of z from `at` on.
// Tolerance 1e-10 nmse: f32 sums here, f64 there.
//!include lib/lone.wgsl
//!include train/lora_in_io.wgsl

// Four columns of four rows of M, turned.
fn m_four(at : u32) -> mat4x4<f32> {
    let n = p.stride / 4u;
    return transpose(mat4x4<f32>(m[at], m[at + n], m[at + 2u * n], m[at + 3u * n]));
}

fn put(tok : u32, k : u32, v : vec4<f32>) {
    if (tok < p.n_tok) {
        let at = tok * p.z_stride + p.at + k;
        z[at] = v.x;
        z[at + 1u] = v.y;
        z[at + 2u] = v.z;
        z[at + 3u] = v.w;
    }
}

fn put_four(tok : u32, k : u32, v : mat4x4<f32>) {
    put(tok, k, v[0]);
    put(tok + 1u, k, v[1]);
    put(tok + 2u, k, v[2]);
    put(tok + 3u, k, v[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = lone_thread(wid, num, id);
    let tok_tiles = (p.n_tok + 3u) / 4u;
    let tok = i % tok_tiles * 4u;
    let k = i / tok_tiles * 8u;
    if (k >= p.rank) {
        return;
    }
    let n4 = p.cols / 4u;
    let toks = four_from(tok, p.n_tok) * n4;
    let row = (p.at + k) * (p.stride / 4u);
    let row2 = (p.at + k + 4u) * (p.stride / 4u);
    var hash = vec4<u32>();
    if (DROP == 1u) {
        hash = vec4<u32>(dropout_row(tok), dropout_row(tok + 1u), dropout_row(tok + 2u),
                         dropout_row(tok + 3u));
    }
    var sum = mat4x4<f32>(); // a column a row t
    var sum2 = mat4x4<f32>();
    for (var c = 0u; c < n4; c++) {
        let at = toks + c;
        var v = mat4x4<f32>(x[at.x], x[at.y], x[at.z], x[at.w]);
        if (DROP == 1u) {
            v = mat4x4<f32>(v[0] * dropout_factors(hash.x, c), v[1] * dropout_factors(hash.y, c),
                            v[2] * dropout_factors(hash.z, c), v[3] * dropout_factors(hash.w, c));
        }
        sum += m_four(row + c) * v;
        sum2 += m_four(row2 + c) * v;
    }
    put_four(tok, k, sum);
    put_four(tok, k + 4u, sum2);
}
