// attention_bwd_scores_lone - s[h][m][j] = x[m] . y[j], head by head: Q K', and dy V'     (training)
//
//   starts  read   i32 a position                     grid   a thread per head and 8 x 4 (m, j), j first
//   x       read   rows of n_head x head_dim f32      bytes  x once per 4 keys, y once per 8 rows
//   y       read   keys of n_kv_head x head_dim f32   needs  head_dim % 4 == 0, span % 4 == 0;
//   s       write  n_head x rows x span f32                  PACKED 0: starts is any buffer, unread
//
// For devices in software, as matmul.lone. A block in which no row sees a key stays as it is.
// Tolerance 1e-9 nmse: f32 here.
//!include lib/lone.wgsl
//!include train/attention_bwd.wgsl
//!bind x read array<vec4<f32>>
//!bind y read array<vec4<f32>>
//!bind s update array<vec4<f32>>

fn x_four(at : vec4<u32>) -> mat4x4<f32> {
    return mat4x4<f32>(x[at.x], x[at.y], x[at.z], x[at.w]);
}

fn put(h : u32, m : u32, j : u32, v : vec4<f32>) {
    if (m < p.rows) {
        s[((h * p.rows + m) * p.span + j) / 4u] = v;
    }
}

fn put_four(h : u32, m : u32, j : u32, v : mat4x4<f32>) {
    put(h, m, j, v[0]);
    put(h, m + 1u, j, v[1]);
    put(h, m + 2u, j, v[2]);
    put(h, m + 3u, j, v[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = lone_thread(wid, num, id);
    let j_tiles = p.span / 4u;
    let m_tiles = (p.rows + 7u) / 8u;
    let j = i % j_tiles * 4u;
    let m = i / j_tiles % m_tiles * 8u;
    let h = i / j_tiles / m_tiles;
    if (h >= p.n_head || !meet(m, 8u, j, 4u)) {
        return;
    }
    let n4 = p.head_dim / 4u;
    let rows = four_from(m, p.rows);
    let rows2 = four_from(m + 4u, p.rows);
    let keys = four_from(p.key0 + j, p.n_key);
    let x0 = ((p.row0 + rows) * p.n_head + h) * n4;
    let x1 = ((p.row0 + rows2) * p.n_head + h) * n4;
    let y0 = (keys * p.n_kv_head + kv_head_of(h)) * n4;
    var sum = mat4x4<f32>(); // a column a row m
    var sum2 = mat4x4<f32>();
    for (var c = 0u; c < n4; c++) {
        let at = y0 + c;
        let k = transpose(mat4x4<f32>(y[at.x], y[at.y], y[at.z], y[at.w]));
        sum += k * x_four(x0 + c);
        sum2 += k * x_four(x1 + c);
    }
    put_four(h, m, j, sum);
    put_four(h, m + 4u, j, sum2);
}
