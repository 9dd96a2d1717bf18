// attention_bwd_keys - dk[j] += sum over the heads h of a kv head and rows m of d[h][m][j] q[m][h]
//   (training); with P and dy in the places of d and q it is dv
//
//   starts  read    i32 a position                     grid   a workgroup per kv head, 64 keys and
//   d       read    n_head x rows x span f32                  64 columns, columns first
//   q       read    rows of n_head x head_dim f32      bytes  d once per 64 columns, q once per 64
//   dk      update  keys of n_kv_head x head_dim f32          keys
//                                                      needs  head_dim % 4 == 0, span % 4 == 0;
//                                                             PACKED 0: starts is any buffer,
//                                                             unread
//
// SEPARATE 1: a workgroup has one head, and head number i of every kv head sets its own sums, in
// copy i of the keys from key0 on; sum_partials adds them up. For devices that a few kv heads do
// not fill.
//
// Reference: attend_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-9 nmse: f32 here.

//!axis tier plain software
//!include lib/base.wgsl
//!include train/attention_bwd.wgsl

//!if tier == software
// For devices in software, as in matmul. The grid is a thread per kv head, 8 keys and 4 columns,
// columns first. An iteration takes four rows m.
const WG : u32 = 16u;
//!bind d read array<vec4<f32>>
//!bind q read array<vec4<f32>>
//!bind dk update array<vec4<f32>>

// Four keys of four rows m: a column a key.
fn d_four(at : vec4<u32>) -> mat4x4<f32> {
    return transpose(mat4x4<f32>(d[at.x], d[at.y], d[at.z], d[at.w]));
}

fn put(j : u32, kv_head : u32, c : u32, v : vec4<f32>) {
    if (j < p.span && p.key0 + j < p.n_key) {
        dk[key_at(p.key0 + j, kv_head) + c] += v;
    }
}

fn put_four(j : u32, kv_head : u32, c : u32, v : mat4x4<f32>) {
    put(j, kv_head, c, v[0]);
    put(j + 1u, kv_head, c, v[1]);
    put(j + 2u, kv_head, c, v[2]);
    put(j + 3u, kv_head, c, v[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = single_thread(wid, num, id);
    let n4 = p.head_dim / 4u;
    let j_tiles = (p.span + 7u) / 8u;
    let c = i % n4;
    let j = i / n4 % j_tiles * 8u;
    let kv_head = i / n4 / j_tiles;
    if (kv_head >= p.n_kv_head) {
        return;
    }
    // Rows that see any of these keys: none before the first key, none past the last one's window.
    let key = p.key0 + j;
    let begin = select(0u, key - p.row0, key > p.row0) / 4u * 4u;
    var end = p.rows;
    if (p.window != 0u) {
        let last = key + 7u + p.window;
        end = min(end, select(0u, last - p.row0, last > p.row0));
    }
    let heads = p.n_head / p.n_kv_head;
    let j4 = j / 4u;
    var sum = mat4x4<f32>(); // a column a key
    var sum2 = mat4x4<f32>();
    for (var h = kv_head * heads; h < (kv_head + 1u) * heads; h++) {
        for (var m = begin; m < end; m += 4u) {
            if (PACKED == 1u) {
                if (starts[p.row0 + m] > key + 7u) { // later examples than these keys'
                    break;
                }
            }
            let rows = four_from(m, p.rows);
            let is = below(m, p.rows);
            let at = ((p.row0 + rows) * p.n_head + h) * n4 + c;
            let queries =
                mat4x4<f32>(q[at.x] * is.x, q[at.y] * is.y, q[at.z] * is.z, q[at.w] * is.w);
            let d0 = (h * p.rows + rows) * (p.span / 4u) + j4;
            sum += queries * d_four(d0);
            sum2 += queries * d_four(d0 + 1u);
        }
    }
    put_four(j, kv_head, c, sum);
    put_four(j + 4u, kv_head, c, sum2);
}
//!else
//!bind d read array<vec4<f32>>
//!bind q read array<vec4<f32>>
//!bind dk update array<vec4<f32>>

override SEPARATE : u32 = 0u;

var<workgroup> left : array<vec4<f32>, 512>;  // 32 rows m of 64 keys
var<workgroup> right : array<vec4<f32>, 512>; // 32 rows m of 64 columns

// Four keys by four columns.
fn plus_outer(sum : mat4x4<f32>, a : vec4<f32>, b : vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(sum[0] + a.x * b, sum[1] + a.y * b, sum[2] + a.z * b, sum[3] + a.w * b);
}

fn put(j : u32, head : u32, c : u32, v : vec4<f32>) {
    if (j >= p.span || p.key0 + j >= p.n_key || c >= p.head_dim / 4u) {
        return;
    }
    if (SEPARATE == 1u) {
        let copy = head % (p.n_head / p.n_kv_head) * min(p.span, p.n_key - p.key0);
        dk[key_at(copy + j, kv_head_of(head)) + c] = v;
    } else {
        dk[key_at(p.key0 + j, kv_head_of(head)) + c] += v;
    }
}

fn put_block(j : u32, head : u32, c : u32, v : mat4x4<f32>) {
    put(j, head, c, v[0]);
    put(j + 1u, head, c, v[1]);
    put(j + 2u, head, c, v[2]);
    put(j + 3u, head, c, v[3]);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let n4 = p.head_dim / 4u;
    let c_tiles = (n4 + 15u) / 16u;
    let j_tiles = (p.span + 63u) / 64u;
    let group = flat_group(wid, num);
    let c0 = group % c_tiles * 16u;
    let j0 = group / c_tiles % j_tiles * 64u;
    let heads = select(p.n_head / p.n_kv_head, 1u, SEPARATE == 1u); // of the workgroup
    let head = group / c_tiles / j_tiles * heads;
    if (head >= p.n_head) {
        return;
    }
    let r = id % 8u;
    let t = id / 8u;
    // Rows that see any of these keys: none before the first key, none past the last one's window.
    let key = p.key0 + j0;
    let begin = select(0u, key - p.row0, key > p.row0) / 32u * 32u;
    var end = p.rows;
    if (p.window != 0u) {
        let last = key + 63u + p.window;
        end = min(end, select(0u, last - p.row0, last > p.row0));
    }
    var s00 = mat4x4<f32>();
    var s01 = mat4x4<f32>();
    var s10 = mat4x4<f32>();
    var s11 = mat4x4<f32>();
    for (var h = head; h < head + heads; h++) {
        for (var m0 = begin; m0 < end; m0 += 32u) {
            if (PACKED == 1u) {
                if (starts[p.row0 + m0] > key + 63u) { // later examples than these keys'
                    break;
                }
            }
            for (var i = 0u; i < 8u; i++) {
                let m = id / 16u + 4u * i;
                let c = id % 16u;
                var a = vec4<f32>();
                var b = vec4<f32>();
                if (m0 + m < p.rows) {
                    if (j0 + 4u * c < p.span) {
                        a = d[((h * p.rows + m0 + m) * p.span + j0) / 4u + c];
                    }
                    b = q[query_at(p.row0 + m0 + m, h) + min(c0 + c, n4 - 1u)];
                }
                left[16u * m + c] = a;
                right[16u * m + c] = b;
            }
            workgroupBarrier();
            for (var m = 0u; m < 32u; m++) {
                let a0 = left[16u * m + t];
                let a1 = left[16u * m + t + 8u];
                let b0 = right[16u * m + r];
                let b1 = right[16u * m + r + 8u];
                s00 = plus_outer(s00, a0, b0);
                s01 = plus_outer(s01, a0, b1);
                s10 = plus_outer(s10, a1, b0);
                s11 = plus_outer(s11, a1, b1);
            }
            workgroupBarrier();
        }
    }
    put_block(j0 + 4u * t, head, c0 + r, s00);
    put_block(j0 + 4u * t, head, c0 + r + 8u, s01);
    put_block(j0 + 4u * t + 32u, head, c0 + r, s10);
    put_block(j0 + 4u * t + 32u, head, c0 + r + 8u, s11);
}
//!end
