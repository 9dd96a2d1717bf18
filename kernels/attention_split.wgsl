// attention_split - part s of n_split of attention: for each row and head, over its share of the history,
//   top = max q.k_j,  total = sum e^(q.k_j - top),  o = sum e^(q.k_j - top) v_j
//
//   q        read   rows x n_head x head_dim f32            grid   rows * n_kv_head * chunks * n_split
//   k_cache  read   n_slots x n_kv_head x head_dim          bytes  the history once (a chunk), q, partial
//   v_cache  read   as k_cache                              needs  head_dim % 4 == 0 and <= 512,
//   partial  write  rows x n_head x n_split x                      chunks = ceil(group / HEADS)
//                   (head_dim + 4) f32: o, top, total, 0, 0
//
// group = n_head / n_kv_head query heads share a kv head; a workgroup takes up to HEADS of them, so that
// keys and values are read once for all. Row t is at pos + pos_offset + t; the loop bounds come from the
// step, so a recorded dispatch serves every position. A share without positions has total 0 and no o.
// A tile is 32 keys: 8 lanes a key for the dots, then (head, key) threads for the softmax, then threads
// over (slice of keys, 4 columns) for the values.
// Reference: attention() in src/ops/ops_cpu.c, with attention_merge. Tolerance 1e-9 nmse: f32 here.
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
    n_split : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(2) var<storage, read> q : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k_cache : array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> v_cache : array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> partial : array<vec4<f32>>;
//!include lib/kv.wgsl

override HEADS : u32 = 8u; // 1, 2, 4 or 8

const WG : u32 = 256u;
const TILE : u32 = 32u;  // keys
const LANES : u32 = 8u;  // threads that share a key's dot product
const PITCH : u32 = 36u; // of a lane's row of `dots`: 32 keys and a gap, so that banks differ
const LOWEST : f32 = -3.0e38;

var<workgroup> dots : array<f32, 2304>;  // head x lane x PITCH; later 2 heads x 4 columns x thread
var<workgroup> score : array<f32, 256>;  // head x key
var<workgroup> prob : array<f32, 256>;   // key x 8 heads
var<workgroup> shrink : array<f32, 8>;   // head: what older tiles are worth under the new maximum
var<workgroup> totals : array<f32, 8>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let group = p.n_head / p.n_kv_head;
    let chunks = (group + HEADS - 1u) / HEADS;
    var at = flat_group(wid, num);
    let split = at % p.n_split;
    at /= p.n_split;
    let chunk = at % chunks;
    at /= chunks;
    let kv_head = at % p.n_kv_head;
    let row = at / p.n_kv_head;
    if (row >= p.rows) {
        return;
    }
    let n4 = p.head_dim / 4u;
    let head0 = kv_head * group + chunk * HEADS;
    let n_here = min(HEADS, group - chunk * HEADS); // heads of this workgroup

    // This share: [lo, hi) of the positions that the row sees.
    let last = step.pos + p.pos_offset + row;
    let first = first_seen(last, p.window);
    let n_seen = last + 1u - first;
    let share = (n_seen + p.n_split * TILE - 1u) / (p.n_split * TILE) * TILE;
    let lo = first + min(split * share, n_seen);
    let hi = first + min(split * share + share, n_seen);

    // Vectors of q of heads past n_here are those of the last one: computed, never stored.
    let row_q = row * p.n_head + head0;
    let q0 = row_q * n4;
    let q1 = (row_q + min(1u, n_here - 1u)) * n4;
    let q2 = (row_q + min(2u, n_here - 1u)) * n4;
    let q3 = (row_q + min(3u, n_here - 1u)) * n4;
    let q4 = (row_q + min(4u, n_here - 1u)) * n4;
    let q5 = (row_q + min(5u, n_here - 1u)) * n4;
    let q6 = (row_q + min(6u, n_here - 1u)) * n4;
    let q7 = (row_q + min(7u, n_here - 1u)) * n4;

    let key = lid / LANES; // in the first phase
    let lane = lid % LANES;
    let my_head = lid / TILE; // in the second
    let my_key = lid % TILE;
    let slices = WG / n4; // in the third
    let slice = lid / n4;
    let col = lid % n4;
    let stride = p.n_kv_head * n4;

    var top = LOWEST;
    var total = 0.0;
    var o0 = vec4<f32>();
    var o1 = vec4<f32>();
    var o2 = vec4<f32>();
    var o3 = vec4<f32>();
    var o4 = vec4<f32>();
    var o5 = vec4<f32>();
    var o6 = vec4<f32>();
    var o7 = vec4<f32>();

    for (var base = lo; base < hi; base += TILE) {
        let n_keys = min(TILE, hi - base);
        let slot0 = base % p.n_slots;

        var a = vec4<f32>();
        var b = vec4<f32>();
        if (key < n_keys) {
            var slot = slot0 + key;
            if (slot >= p.n_slots) {
                slot -= p.n_slots;
            }
            let src = slot * stride + kv_head * n4;
            for (var d = lane; d < n4; d += LANES) {
                let i = src + d;
                let k = kv_four(k_cache[i >> KV_F16], i);
                a.x += dot(k, q[q0 + d]);
                if (HEADS > 1u) {
                    a.y += dot(k, q[q1 + d]);
                }
                if (HEADS > 2u) {
                    a.z += dot(k, q[q2 + d]);
                    a.w += dot(k, q[q3 + d]);
                }
                if (HEADS > 4u) {
                    b.x += dot(k, q[q4 + d]);
                    b.y += dot(k, q[q5 + d]);
                    b.z += dot(k, q[q6 + d]);
                    b.w += dot(k, q[q7 + d]);
                }
            }
        }
        let to = lane * PITCH + key;
        dots[to] = a.x;
        if (HEADS > 1u) {
            dots[to + LANES * PITCH] = a.y;
        }
        if (HEADS > 2u) {
            dots[to + 2u * LANES * PITCH] = a.z;
            dots[to + 3u * LANES * PITCH] = a.w;
        }
        if (HEADS > 4u) {
            dots[to + 4u * LANES * PITCH] = b.x;
            dots[to + 5u * LANES * PITCH] = b.y;
            dots[to + 6u * LANES * PITCH] = b.z;
            dots[to + 7u * LANES * PITCH] = b.w;
        }
        workgroupBarrier();

        var s = LOWEST;
        if (my_head < HEADS && my_key < n_keys) {
            s = 0.0;
            for (var j = 0u; j < LANES; j++) {
                s += dots[(my_head * LANES + j) * PITCH + my_key];
            }
        }
        score[lid] = s;
        workgroupBarrier();

        if (my_head < HEADS) {
            var new_top = top;
            for (var j = 0u; j < TILE; j++) {
                new_top = max(new_top, score[my_head * TILE + j]);
            }
            let e = select(0.0, exp(s - new_top), my_key < n_keys);
            let older = exp(top - new_top);
            prob[my_key * 8u + my_head] = e;
            if (my_key == 0u) {
                shrink[my_head] = older;
            }
            total = total * older + e;
            top = new_top;
        }
        workgroupBarrier();

        o0 *= shrink[0];
        o1 *= shrink[1];
        o2 *= shrink[2];
        o3 *= shrink[3];
        o4 *= shrink[4];
        o5 *= shrink[5];
        o6 *= shrink[6];
        o7 *= shrink[7];
        if (slice < slices) {
            for (var j = slice; j < n_keys; j += slices) {
                var slot = slot0 + j;
                if (slot >= p.n_slots) {
                    slot -= p.n_slots;
                }
                let i = slot * stride + kv_head * n4 + col;
                let v = kv_four(v_cache[i >> KV_F16], i);
                o0 += prob[j * 8u] * v;
                if (HEADS > 1u) {
                    o1 += prob[j * 8u + 1u] * v;
                }
                if (HEADS > 2u) {
                    o2 += prob[j * 8u + 2u] * v;
                    o3 += prob[j * 8u + 3u] * v;
                }
                if (HEADS > 4u) {
                    o4 += prob[j * 8u + 4u] * v;
                    o5 += prob[j * 8u + 5u] * v;
                    o6 += prob[j * 8u + 6u] * v;
                    o7 += prob[j * 8u + 7u] * v;
                }
            }
        }
    }

    // The sum of a head's exponentials is spread over its 32 threads.
    score[lid] = total;
    workgroupBarrier();
    if (my_head < n_here && my_key == 0u) {
        for (var j = 1u; j < TILE; j++) {
            total += score[lid + j];
        }
        let to = ((row_q + my_head) * p.n_split + split) * (n4 + 1u) + n4;
        partial[to] = vec4<f32>(top, total, 0.0, 0.0);
    }
    if (lo == hi) {
        return;
    }
    // The slices' values, two heads at a time through `dots`.
    for (var pair = 0u; pair < n_here; pair += 2u) {
        var a = o0;
        var b = o1;
        if (pair == 2u) {
            a = o2;
            b = o3;
        } else if (pair == 4u) {
            a = o4;
            b = o5;
        } else if (pair == 6u) {
            a = o6;
            b = o7;
        }
        for (var c = 0u; c < 4u; c++) {
            dots[c * WG + lid] = a[c];
            dots[(c + 4u) * WG + lid] = b[c];
        }
        workgroupBarrier();
        // Threads below n4 finish the first head of the two, the next n4 the second.
        let which = lid / n4;
        if (which < 2u && pair + which < n_here) {
            var sum = vec4<f32>();
            for (var j = 0u; j < slices; j++) {
                let src = which * 4u * WG + j * n4 + col;
                sum += vec4<f32>(dots[src], dots[src + WG], dots[src + 2u * WG], dots[src + 3u * WG]);
            }
            partial[((row_q + pair + which) * p.n_split + split) * (n4 + 1u) + col] = sum;
        }
        workgroupBarrier();
    }
}
