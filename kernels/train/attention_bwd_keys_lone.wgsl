// attention_bwd_keys_lone - dk[j] += sum over the heads h of a kv head and rows m of d[h][m][j] q[m][h]     (training);
//   with P and dy in the places of d and q it is dv
//
//   starts  read    i32 a position                     grid   a thread per kv head, 8 keys and 4 columns,
//   d       read    n_head x rows x span f32                  columns first
//   q       read    rows of n_head x head_dim f32      bytes  d once per 4 columns, q once per 8 keys
//   dk      update  keys of n_kv_head x head_dim f32   needs  head_dim % 4 == 0, span % 4 == 0;
//                                                             PACKED 0: starts is any buffer, unread
//
// For devices in software, as matmul.lone. A turn of the loop takes four rows m.
// Tolerance 1e-9 nmse: f32 here.
//!include lib/lone.wgsl
//!include train/attention_bwd.wgsl
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
    let i = lone_thread(wid, num, id);
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
            let queries = mat4x4<f32>(q[at.x] * is.x, q[at.y] * is.y, q[at.z] * is.z, q[at.w] * is.w);
            let d0 = (h * p.rows + rows) * (p.span / 4u) + j4;
            sum += queries * d_four(d0);
            sum2 += queries * d_four(d0 + 1u);
        }
    }
    put_four(j, kv_head, c, sum);
    put_four(j + 4u, kv_head, c, sum2);
}
