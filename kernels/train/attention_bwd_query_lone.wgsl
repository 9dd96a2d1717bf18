// attention_bwd_query_lone - dq[m] = sum over keys j of d[h][m][j] k[j], head by head     (training);
//   with P and V in the places of d and k it is attention's result
//
//   starts  read   i32 a position                     grid   a thread per head, 8 rows and 4 columns,
//   d       read   n_head x rows x span f32                  columns first
//   k       read   keys of n_kv_head x head_dim f32   bytes  d once per 4 columns, k once per 8 rows
//   dq      write  rows of n_head x head_dim f32      needs  head_dim % 4 == 0, span % 4 == 0;
//                                                            PACKED 0: starts is any buffer, unread
//
// For devices in software, as matmul.lone.
// Tolerance 1e-9 nmse: f32 here.
//!include lib/lone.wgsl
//!include train/attention_bwd.wgsl
//!bind d read array<vec4<f32>>
//!bind k read array<vec4<f32>>
//!bind dq update array<vec4<f32>>

fn d_four(at : vec4<u32>) -> mat4x4<f32> {
    return mat4x4<f32>(d[at.x], d[at.y], d[at.z], d[at.w]);
}

fn put(m : u32, h : u32, c : u32, v : vec4<f32>) {
    if (m < p.rows) {
        dq[query_at(p.row0 + m, h) + c] = v;
    }
}

fn put_four(m : u32, h : u32, c : u32, v : mat4x4<f32>) {
    put(m, h, c, v[0]);
    put(m + 1u, h, c, v[1]);
    put(m + 2u, h, c, v[2]);
    put(m + 3u, h, c, v[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = lone_thread(wid, num, id);
    let n4 = p.head_dim / 4u;
    let m_tiles = (p.rows + 7u) / 8u;
    let c = i % n4;
    let m = i / n4 % m_tiles * 8u;
    let h = i / n4 / m_tiles;
    if (h >= p.n_head) {
        return;
    }
    // The first row sees farthest back, the last one farthest forward.
    let begin = (first_key(p.row0 + m) - p.key0) / 4u;
    let end = (p.row0 + min(m + 7u, p.rows - 1u) - p.key0) / 4u + 1u;
    let d0 = (h * p.rows + four_from(m, p.rows)) * (p.span / 4u);
    let d1 = (h * p.rows + four_from(m + 4u, p.rows)) * (p.span / 4u);
    let kv_head = kv_head_of(h);
    var sum = mat4x4<f32>(); // a column a row m
    var sum2 = mat4x4<f32>();
    for (var j4 = begin; j4 < end; j4++) {
        let at = (four_from(p.key0 + 4u * j4, p.n_key) * p.n_kv_head + kv_head) * n4 + c;
        let keys = mat4x4<f32>(k[at.x], k[at.y], k[at.z], k[at.w]);
        sum += keys * d_four(d0 + j4);
        sum2 += keys * d_four(d1 + j4);
    }
    put_four(m, h, c, sum);
    put_four(m + 4u, h, c, sum2);
}
