// attention_bwd_query - dq[m] = sum over keys j of d[h][m][j] k[j], head by head     (training);
//   with P and V in the places of d and k it is attention's result
//
//   starts  read   i32 a position                     grid   a workgroup per head, 64 rows and 64
//   d       read   n_head x rows x span f32                  columns, columns first
//   k       read   keys of n_kv_head x head_dim f32   bytes  d once per 64 columns, k once per 64
//   dq      write  rows of n_head x head_dim f32             rows
//                                                     needs  head_dim % 4 == 0, span % 4 == 0;
//                                                            PACKED 0: starts is any buffer, unread
//
// Reference: attend_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-9 nmse: f32 here.

//!axis tier plain software
//!include lib/base.wgsl
//!include train/attention_bwd.wgsl

//!if tier == software
// For devices in software, as in matmul. The grid is a thread per head, 8 rows and 4 columns,
// columns first.
const WG : u32 = 16u;
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
    let i = single_thread(wid, num, id);
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
//!else
//!include train/tile_bwd.wgsl
//!bind d read array<vec4<f32>>
//!bind k read array<vec4<f32>>
//!bind dq update array<vec4<f32>>

fn put(m : u32, h : u32, c : u32, v : vec4<f32>) {
    if (m < p.rows && c < p.head_dim / 4u) {
        dq[query_at(p.row0 + m, h) + c] = v;
    }
}

fn put_block(m : u32, h : u32, c : u32, v : mat4x4<f32>) {
    put(m, h, c, v[0]);
    put(m + 8u, h, c, v[1]);
    put(m + 16u, h, c, v[2]);
    put(m + 24u, h, c, v[3]);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let n4 = p.head_dim / 4u;
    let c_tiles = (n4 + 15u) / 16u;
    let m_tiles = (p.rows + 63u) / 64u;
    let group = flat_group(wid, num);
    let c0 = group % c_tiles * 16u;
    let m0 = group / c_tiles % m_tiles * 64u;
    let h = group / c_tiles / m_tiles;
    if (h >= p.n_head) {
        return;
    }
    // The tile's first row sees farthest back, its last row farthest forward.
    let begin = (first_key(p.row0 + m0) - p.key0) / 32u * 32u;
    let end = p.row0 + min(m0 + 63u, p.rows - 1u) + 1u - p.key0;
    let r = id % 8u;
    let t = id / 8u;
    var sum = Block();
    for (var j0 = begin; j0 < end; j0 += 32u) {
        for (var i = 0u; i < 8u; i++) {
            let m = min(m0 + t + 8u * i, p.rows - 1u);
            var v = vec4<f32>();
            if (j0 + 4u * r < p.span) {
                v = d[((h * p.rows + m) * p.span + j0) / 4u + r];
            }
            put_left(t + 8u * i, r, v);
            // Two rows of keys an iteration: 16 vectors of 32 rows.
            let row = id / 16u + 4u * i;
            let c = c0 + id % 16u;
            let key = min(p.key0 + j0 + row, p.n_key - 1u);
            put_right(row, id % 16u, k[key_at(key, kv_head_of(h)) + min(c, n4 - 1u)]);
        }
        workgroupBarrier();
        sum = plus_staged(sum, r, t);
        workgroupBarrier();
    }
    put_block(m0 + t, h, c0 + r, sum.s00);
    put_block(m0 + t, h, c0 + r + 8u, sum.s01);
    put_block(m0 + t + 32u, h, c0 + r, sum.s10);
    put_block(m0 + t + 32u, h, c0 + r + 8u, sum.s11);
}
//!end
