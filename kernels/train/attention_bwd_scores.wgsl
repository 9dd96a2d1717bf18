// attention_bwd_scores - s[h][m][j] = x[m] . y[j], head by head: Q K', and dy V'     (training)
//
//   starts  read   i32 a position                     grid   a workgroup per head and 64 x 64 (m,
//   x       read   rows of n_head x head_dim f32             j), j first
//   y       read   keys of n_kv_head x head_dim f32   bytes  x and y once per 64 of the other
//   s       write  n_head x rows x span f32           needs  head_dim % 4 == 0, span % 4 == 0;
//                                                            PACKED 0: starts is any buffer, unread
//
// A tile in which no row sees a key stays as it is.
// Reference: attend_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-9 nmse: f32 here.

//!axis tier plain software
//!include lib/base.wgsl
//!include train/attention_bwd.wgsl

//!if tier == software
// For devices in software, as in matmul. The grid is a thread per head and 8 x 4 (m, j), j first. A
// block in which no row sees a key stays as it is.
const WG : u32 = 16u;
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
    let i = single_thread(wid, num, id);
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
//!else
//!include train/tile_bwd.wgsl
//!bind x read array<vec4<f32>>
//!bind y read array<vec4<f32>>
//!bind s update array<f32>

fn put(h : u32, m : u32, j : u32, v : vec4<f32>) {
    for (var i = 0u; i < 4u; i++) {
        if (m < p.rows && j + 8u * i < p.span) {
            s[(h * p.rows + m) * p.span + j + 8u * i] = v[i];
        }
    }
}

fn put_block(h : u32, m : u32, j : u32, v : mat4x4<f32>) {
    put(h, m, j, v[0]);
    put(h, m + 8u, j, v[1]);
    put(h, m + 16u, j, v[2]);
    put(h, m + 24u, j, v[3]);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let j_tiles = (p.span + 63u) / 64u;
    let m_tiles = (p.rows + 63u) / 64u;
    let group = flat_group(wid, num);
    let j0 = group % j_tiles * 64u;
    let m0 = group / j_tiles % m_tiles * 64u;
    let h = group / j_tiles / m_tiles;
    if (h >= p.n_head || !meet(m0, 64u, j0, 64u)) {
        return;
    }
    let kv_head = kv_head_of(h);
    let n4 = p.head_dim / 4u;
    let r = id % 8u;
    let t = id / 8u;
    var s00 = mat4x4<f32>();
    var s01 = mat4x4<f32>();
    var s10 = mat4x4<f32>();
    var s11 = mat4x4<f32>();
    for (var first = 0u; first < n4; first += 8u) {
        let col = first + r;
        for (var i = 0u; i < 8u; i++) {
            let row = t + 8u * i;
            var a = vec4<f32>();
            var b = vec4<f32>();
            if (col < n4) {
                a = x[query_at(p.row0 + min(m0 + row, p.rows - 1u), h) + col];
                b = y[key_at(min(p.key0 + j0 + row, p.n_key - 1u), kv_head) + col];
            }
            x_tile[place(row, r)] = a;
            w_tile[place(row, r)] = b;
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
    put_block(h, m0 + t, j0 + r, s00);
    put_block(h, m0 + t, j0 + r + 32u, s10);
    put_block(h, m0 + t + 32u, j0 + r, s01);
    put_block(h, m0 + t + 32u, j0 + r + 32u, s11);
}
//!end
