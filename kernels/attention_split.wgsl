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

//!include lib/attention_split.wgsl

const TILE : u32 = 32u;  // keys
const LANES : u32 = 8u;  // threads that share a key's dot product
const PITCH : u32 = 36u; // of a lane's row of `spread`: 32 keys and a gap, so that banks differ
const HEAD : u32 = LANES * PITCH;

var<workgroup> score : array<f32, 256>; // head x key
var<workgroup> prob : array<f32, 256>;  // key x 8 heads
var<workgroup> shrink : array<f32, 8>;  // head: what older tiles are worth under the new maximum

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let part = part_of(flat_group(wid, num));
    if (!part.exists) {
        return;
    }
    let n4 = p.head_dim / 4u;
    let key = lid / LANES; // in the first phase
    let lane = lid % LANES;
    let my_head = lid / TILE; // in the second
    let my_key = lid % TILE;
    let slices = WG / n4; // in the third
    let slice = lid / n4;
    let col = lid % n4;

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

    for (var base = part.lo; base < part.hi; base += TILE) {
        let n_keys = min(TILE, part.hi - base);
        let slot0 = base % p.n_slots;

        var d = Scores();
        if (key < n_keys) {
            d = dots_of(vectors_at(slot0, key, part.kv_head), part, lane, LANES);
        }
        let to = lane * PITCH + key;
        spread[to] = d.a.x;
        if (HEADS > 1u) {
            spread[to + HEAD] = d.a.y;
        }
        if (HEADS > 2u) {
            spread[to + 2u * HEAD] = d.a.z;
            spread[to + 3u * HEAD] = d.a.w;
        }
        if (HEADS > 4u) {
            spread[to + 4u * HEAD] = d.b.x;
            spread[to + 5u * HEAD] = d.b.y;
            spread[to + 6u * HEAD] = d.b.z;
            spread[to + 7u * HEAD] = d.b.w;
        }
        workgroupBarrier();

        var s = LOWEST;
        if (my_head < HEADS && my_key < n_keys) {
            s = 0.0;
            for (var j = 0u; j < LANES; j++) {
                s += spread[my_head * HEAD + j * PITCH + my_key];
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
                let i = vectors_at(slot0, j, part.kv_head) + col;
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
    if (my_head < part.n_head && my_key == 0u) {
        for (var j = 1u; j < TILE; j++) {
            total += score[lid + j];
        }
        partial[partial_at(part, my_head) + n4] = vec4<f32>(top, total, 0.0, 0.0);
    }
    if (part.lo == part.hi) {
        return;
    }
    store_two(part, 0u, o0, o1, lid);
    if (HEADS > 2u) {
        store_two(part, 2u, o2, o3, lid);
    }
    if (HEADS > 4u) {
        store_two(part, 4u, o4, o5, lid);
        store_two(part, 6u, o6, o7, lid);
    }
}
