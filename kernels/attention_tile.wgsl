// attention_tile - y = sum_j softmax(q.k_j) v_j over the positions j that the row sees, 32 queries at a time
//
//   q        read   rows x n_head x head_dim f32      grid   ceil(rows * group / 32) * n_kv_head
//   k_cache  read   n_slots x n_kv_head x head_dim    bytes  the history once a tile, q and y once
//   v_cache  read   as k_cache                        needs  head_dim % 4 == 0 and <= 128 COLS,
//   y        write  rows x n_head x head_dim f32             group = n_head / n_kv_head
//
// The group query heads of a kv head and neighbouring rows share a tile: query m of a kv head is head
// m % group of row m / group. Row t is at pos + pos_offset + t. Keys come 64 at a time: 8 warps of 4
// queries, a lane for two keys in the scores and for COLS x 4 columns in the values; the softmax is
// online. Workgroup memory holds 32 columns of keys and queries, then the tile's probabilities.
// Reference: attention() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.
//!include lib/grid.wgsl
//!include lib/step.wgsl
//!include lib/span.wgsl
struct Params {
    rows : u32,
    n_head : u32,
    n_kv_head : u32,
    head_dim : u32,
    n_slots : u32,
    window : u32, // 0: all
    pos_offset : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(2) var<storage, read> q : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k_cache : array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> v_cache : array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> y : array<vec4<f32>>;
//!include lib/kv.wgsl

override COLS : u32 = 4u; // vectors of 4 columns a lane: 1 .. 4, ceil(head_dim / 128)

const WG : u32 = 256u;
const QUERIES : u32 = 32u; // 4 for each 32 threads
const KEYS : u32 = 64u;
const STEP4 : u32 = 8u; // vectors of 4 columns staged at once
const PITCH : u32 = 9u; // of a key's row of `keys`: 8 vectors and a gap, so that banks differ
const LOWEST : f32 = -3.0e38;

var<workgroup> keys : array<vec4<f32>, 576>;    // key x PITCH; then probabilities, key x warp
var<workgroup> queries : array<vec4<f32>, 256>; // query x STEP4; then a vector a thread

struct Query {
    at : u32, // of its vector in q and y
    pos : u32,
}

// Query m of the kv head; past the end, the last one.
fn query(m : u32, kv_head : u32, group : u32) -> Query {
    let i = min(m, p.rows * group - 1u);
    return Query((i / group * p.n_head + kv_head * group + i % group) * (p.head_dim / 4u),
                 step.pos + p.pos_offset + i / group);
}

fn seen(key : u32, pos : u32) -> bool {
    return key <= pos && (p.window == 0u || pos - key < p.window);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let group = p.n_head / p.n_kv_head;
    let n_query = p.rows * group;
    let index = flat_group(wid, num);
    let kv_head = index % p.n_kv_head;
    let m0 = index / p.n_kv_head * QUERIES;
    if (m0 >= n_query) {
        return;
    }
    let n4 = p.head_dim / 4u;
    let stride = p.n_kv_head * n4;
    let warp = lid / 32u;
    let lane = lid % 32u;
    let q0 = query(m0 + 4u * warp, kv_head, group);
    let q1 = query(m0 + 4u * warp + 1u, kv_head, group);
    let q2 = query(m0 + 4u * warp + 2u, kv_head, group);
    let q3 = query(m0 + 4u * warp + 3u, kv_head, group);
    let staged = query(m0 + lid / STEP4, kv_head, group).at; // the query whose columns this thread stages

    // The tile's first row sees farthest back, its last row farthest forward.
    let begin = first_seen(query(m0, kv_head, group).pos, p.window);
    let end = query(m0 + QUERIES - 1u, kv_head, group).pos + 1u;

    var top = vec4<f32>(LOWEST); // of the warp's four queries
    var total = vec4<f32>();     // this lane's keys only
    var a0 = vec4<f32>();        // query 0, columns 4 lane ..
    var a1 = vec4<f32>();        // query 1
    var a2 = vec4<f32>();
    var a3 = vec4<f32>();
    var b0 = vec4<f32>(); // columns 4 (lane + 32) ..
    var b1 = vec4<f32>();
    var b2 = vec4<f32>();
    var b3 = vec4<f32>();
    var c0 = vec4<f32>();
    var c1 = vec4<f32>();
    var c2 = vec4<f32>();
    var c3 = vec4<f32>();
    var d0 = vec4<f32>();
    var d1 = vec4<f32>();
    var d2 = vec4<f32>();
    var d3 = vec4<f32>();

    for (var base = begin; base < end; base += KEYS) {
        let n_keys = min(KEYS, end - base);
        let slot0 = base % p.n_slots;

        // Scores: s for key `lane`, t for key `lane + 32`, of the four queries.
        var s = vec4<f32>();
        var t = vec4<f32>();
        for (var col = 0u; col < n4; col += STEP4) {
            let c = lid % STEP4;
            for (var half = 0u; half < 2u; half++) {
                let key = lid / STEP4 + 32u * half;
                var slot = slot0 + min(key, n_keys - 1u);
                if (slot >= p.n_slots) {
                    slot -= p.n_slots;
                }
                var k = vec4<f32>();
                if (col + c < n4) {
                    let i = slot * stride + kv_head * n4 + col + c;
                    k = kv_four(k_cache[i >> KV_F16], i);
                }
                keys[key * PITCH + c] = k;
            }
            queries[lid] = q[staged + min(col + c, n4 - 1u)];
            workgroupBarrier();
            for (var j = 0u; j < STEP4; j++) {
                let k = keys[lane * PITCH + j];
                let l = keys[(lane + 32u) * PITCH + j];
                let u0 = queries[(4u * warp) * STEP4 + j];
                let u1 = queries[(4u * warp + 1u) * STEP4 + j];
                let u2 = queries[(4u * warp + 2u) * STEP4 + j];
                let u3 = queries[(4u * warp + 3u) * STEP4 + j];
                s += vec4<f32>(dot(u0, k), dot(u1, k), dot(u2, k), dot(u3, k));
                t += vec4<f32>(dot(u0, l), dot(u1, l), dot(u2, l), dot(u3, l));
            }
            workgroupBarrier();
        }

        let near = base + lane;
        let far = near + 32u;
        let see_s = vec4<bool>(seen(near, q0.pos), seen(near, q1.pos), seen(near, q2.pos),
                               seen(near, q3.pos));
        let see_t = vec4<bool>(seen(far, q0.pos), seen(far, q1.pos), seen(far, q2.pos),
                               seen(far, q3.pos));
        s = select(vec4<f32>(LOWEST), s, see_s);
        t = select(vec4<f32>(LOWEST), t, see_t);
        queries[lid] = max(s, t);
        workgroupBarrier();
        var new_top = top;
        for (var j = 0u; j < 32u; j++) {
            new_top = max(new_top, queries[warp * 32u + j]);
        }
        s = select(vec4<f32>(), exp(s - new_top), see_s);
        t = select(vec4<f32>(), exp(t - new_top), see_t);
        keys[lane * 8u + warp] = s;
        keys[(lane + 32u) * 8u + warp] = t;
        let older = exp(top - new_top);
        top = new_top;
        total = total * older + s + t;
        workgroupBarrier();

        a0 *= older.x;
        a1 *= older.y;
        a2 *= older.z;
        a3 *= older.w;
        if (COLS > 1u) {
            b0 *= older.x;
            b1 *= older.y;
            b2 *= older.z;
            b3 *= older.w;
        }
        if (COLS > 2u) {
            c0 *= older.x;
            c1 *= older.y;
            c2 *= older.z;
            c3 *= older.w;
        }
        if (COLS > 3u) {
            d0 *= older.x;
            d1 *= older.y;
            d2 *= older.z;
            d3 *= older.w;
        }
        var slot = slot0;
        for (var j = 0u; j < n_keys; j++) {
            let e = keys[j * 8u + warp];
            let i = slot * stride + kv_head * n4 + lane;
            if (lane < n4) {
                let v = kv_four(v_cache[i >> KV_F16], i);
                a0 += e.x * v;
                a1 += e.y * v;
                a2 += e.z * v;
                a3 += e.w * v;
            }
            if (COLS > 1u && lane + 32u < n4) {
                let v = kv_four(v_cache[(i + 32u) >> KV_F16], i + 32u);
                b0 += e.x * v;
                b1 += e.y * v;
                b2 += e.z * v;
                b3 += e.w * v;
            }
            if (COLS > 2u && lane + 64u < n4) {
                let v = kv_four(v_cache[(i + 64u) >> KV_F16], i + 64u);
                c0 += e.x * v;
                c1 += e.y * v;
                c2 += e.z * v;
                c3 += e.w * v;
            }
            if (COLS > 3u && lane + 96u < n4) {
                let v = kv_four(v_cache[(i + 96u) >> KV_F16], i + 96u);
                d0 += e.x * v;
                d1 += e.y * v;
                d2 += e.z * v;
                d3 += e.w * v;
            }
            slot += 1u;
            if (slot == p.n_slots) {
                slot = 0u;
            }
        }
        workgroupBarrier(); // before the next tile's keys
    }

    // The sum of a query's exponentials is spread over its 32 lanes.
    queries[lid] = total;
    workgroupBarrier();
    total = vec4<f32>();
    for (var j = 0u; j < 32u; j++) {
        total += queries[warp * 32u + j];
    }
    let m = m0 + 4u * warp;
    store(m < n_query, q0.at, lane, total.x, a0, b0, c0, d0);
    store(m + 1u < n_query, q1.at, lane, total.y, a1, b1, c1, d1);
    store(m + 2u < n_query, q2.at, lane, total.z, a2, b2, c2, d2);
    store(m + 3u < n_query, q3.at, lane, total.w, a3, b3, c3, d3);
}

fn store(exists : bool, at : u32, lane : u32, total : f32, a : vec4<f32>, b : vec4<f32>,
         c : vec4<f32>, d : vec4<f32>) {
    let n4 = p.head_dim / 4u;
    if (exists && lane < n4) {
        y[at + lane] = a / total;
    }
    if (exists && COLS > 1u && lane + 32u < n4) {
        y[at + lane + 32u] = b / total;
    }
    if (exists && COLS > 2u && lane + 64u < n4) {
        y[at + lane + 64u] = c / total;
    }
    if (exists && COLS > 3u && lane + 96u < n4) {
        y[at + lane + 96u] = d / total;
    }
}
