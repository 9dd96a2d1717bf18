// attention_split.subgroup - part s of n_split of attention: for each row and head, over its share of the
//   history, top = max q.k_j,  total = sum e^(q.k_j - top),  o = sum e^(q.k_j - top) v_j
//
//   q        read   rows x n_head x head_dim f32            grid   rows * n_kv_head * chunks * n_split
//   k_cache  read   n_slots x n_kv_head x head_dim          bytes  the history once (a chunk), q, partial
//   v_cache  read   as k_cache                              needs  head_dim % 4 == 0 and <= 512,
//   partial  write  rows x n_head x n_split x                      chunks = ceil(group / HEADS),
//                   (head_dim + 4) f32: o, top, total, 0, 0        LANES <= lanes of a subgroup
//
// As attention_split, with two barriers a tile instead of three: the LANES threads of a key add up their
// dot products by shuffles, and each then knows all heads' scores of its key. A tile is 256 / LANES keys.
// Reference: attention() in src/ops/ops_cpu.c, with attention_merge. Tolerance 1e-9 nmse: f32 here.

enable subgroups;
//!include lib/attention_split.wgsl

override LANES : u32 = 4u; // threads that share a key's dot product: 4 or 8

var<workgroup> prob_a : array<vec4<f32>, 64>; // by key, heads 0 .. 3
var<workgroup> prob_b : array<vec4<f32>, 64>; // heads 4 .. 7
var<workgroup> subgroup_a : array<vec4<f32>, 64>; // by subgroup
var<workgroup> subgroup_b : array<vec4<f32>, 64>;

// The sum over the LANES threads of a key.
fn lanes_sum(v : vec4<f32>) -> vec4<f32> {
    var s = v;
    s += subgroupShuffleXor(s, 1u);
    s += subgroupShuffleXor(s, 2u);
    if (LANES == 8u) {
        s += subgroupShuffleXor(s, 4u);
    }
    return s;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32, @builtin(subgroup_size) width : u32,
        @builtin(subgroup_invocation_id) in_subgroup : u32) {
    let part = part_of(flat_group(wid, num));
    if (!part.exists) {
        return;
    }
    let n4 = p.head_dim / 4u;
    let tile = WG / LANES; // keys
    let key = lid / LANES; // for the scores
    let lane = lid % LANES;
    let slices = WG / n4; // for the values
    let slice = lid / n4;
    let col = lid % n4;
    let n_subgroups = WG / width;

    var top_a = vec4<f32>(LOWEST); // by head
    var top_b = vec4<f32>(LOWEST);
    var total_a = vec4<f32>(); // this thread's keys only
    var total_b = vec4<f32>();
    var o0 = vec4<f32>();
    var o1 = vec4<f32>();
    var o2 = vec4<f32>();
    var o3 = vec4<f32>();
    var o4 = vec4<f32>();
    var o5 = vec4<f32>();
    var o6 = vec4<f32>();
    var o7 = vec4<f32>();

    for (var base = part.lo; base < part.hi; base += tile) {
        let n_keys = min(tile, part.hi - base);
        let slot0 = base % p.n_slots;

        var d = Scores();
        if (key < n_keys) {
            d = dots_of(vectors_at(slot0, key, part.kv_head), part, lane, LANES);
        }
        let a = lanes_sum(d.a);
        var b = d.b;
        if (HEADS > 4u) {
            b = lanes_sum(b);
        }
        let best_a = subgroupMax(select(vec4<f32>(LOWEST), a, key < n_keys));
        let best_b = subgroupMax(select(vec4<f32>(LOWEST), b, key < n_keys));
        if (in_subgroup == 0u) {
            subgroup_a[lid / width] = best_a;
            subgroup_b[lid / width] = best_b;
        }
        workgroupBarrier();

        var new_a = top_a;
        var new_b = top_b;
        for (var j = 0u; j < n_subgroups; j++) {
            new_a = max(new_a, subgroup_a[j]);
            if (HEADS > 4u) {
                new_b = max(new_b, subgroup_b[j]);
            }
        }
        if (lane == 0u) {
            let e = select(vec4<f32>(), exp(a - new_a), key < n_keys);
            prob_a[key] = e;
            total_a = total_a * exp(top_a - new_a) + e;
            if (HEADS > 4u) {
                let f = select(vec4<f32>(), exp(b - new_b), key < n_keys);
                prob_b[key] = f;
                total_b = total_b * exp(top_b - new_b) + f;
            }
        }
        let older_a = exp(top_a - new_a);
        o0 *= older_a.x;
        o1 *= older_a.y;
        o2 *= older_a.z;
        o3 *= older_a.w;
        top_a = new_a;
        if (HEADS > 4u) {
            let older_b = exp(top_b - new_b);
            o4 *= older_b.x;
            o5 *= older_b.y;
            o6 *= older_b.z;
            o7 *= older_b.w;
            top_b = new_b;
        }
        workgroupBarrier();

        if (slice < slices) {
            for (var j = slice; j < n_keys; j += slices) {
                let i = vectors_at(slot0, j, part.kv_head) + col;
                let v = kv_four(v_cache[i >> KV_F16], i);
                let e = prob_a[j];
                o0 += e.x * v;
                if (HEADS > 1u) {
                    o1 += e.y * v;
                }
                if (HEADS > 2u) {
                    o2 += e.z * v;
                    o3 += e.w * v;
                }
                if (HEADS > 4u) {
                    let f = prob_b[j];
                    o4 += f.x * v;
                    o5 += f.y * v;
                    o6 += f.z * v;
                    o7 += f.w * v;
                }
            }
        }
    }

    let sum_a = subgroupAdd(total_a);
    let sum_b = subgroupAdd(total_b);
    workgroupBarrier(); // everyone has read the last tile's
    if (in_subgroup == 0u) {
        subgroup_a[lid / width] = sum_a;
        subgroup_b[lid / width] = sum_b;
    }
    workgroupBarrier();
    if (lid < part.n_head) {
        total_a = vec4<f32>();
        total_b = vec4<f32>();
        for (var j = 0u; j < n_subgroups; j++) {
            total_a += subgroup_a[j];
            total_b += subgroup_b[j];
        }
        let top = select(top_b[lid & 3u], top_a[lid & 3u], lid < 4u);
        let total = select(total_b[lid & 3u], total_a[lid & 3u], lid < 4u);
        partial[partial_at(part, lid) + n4] = vec4<f32>(top, total, 0.0, 0.0);
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
