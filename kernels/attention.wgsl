// attention - y = sum_j softmax(q.k_j) v_j over the positions j that the row sees
//
//   q        read   rows x n_head x head_dim f32       grid   rows * n_head workgroups
//   k_cache  read   n_slots x n_kv_head x head_dim     bytes  the history once a head
//   v_cache  read   as k_cache                         needs  head_dim % 4 == 0 and <= 512,
//   y        write  rows x n_head x head_dim f32              WG <= 64
//
// The simple version: one head of one row a workgroup, WG keys at a time, no sharing of loads between
// heads or rows. attention_split and attention_tile are for GPUs; this is for devices that run on a CPU,
// where a small WG is best, and what the others fall back to.
// Row t is at pos + pos_offset + t. Query head h reads kv head h / (n_head / n_kv_head).
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

override WG : u32 = 64u; // threads, and keys of a tile

const LOWEST : f32 = -3.0e38;

var<workgroup> query : array<vec4<f32>, 128>;
var<workgroup> out : array<vec4<f32>, 128>; // column d belongs to thread d % WG
var<workgroup> place : array<u32, 64>;      // a key's vectors in the cache
var<workgroup> score : array<f32, 64>;
var<workgroup> prob : array<f32, 64>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let index = flat_group(wid, num);
    if (index >= p.rows * p.n_head) {
        return;
    }
    let n4 = p.head_dim / 4u;
    let kv_head = (index % p.n_head) / (p.n_head / p.n_kv_head);
    let last = step.pos + p.pos_offset + index / p.n_head;
    for (var d = lid; d < n4; d += WG) {
        query[d] = q[index * n4 + d];
    }
    workgroupBarrier();

    var top = LOWEST;
    var total = 0.0;
    for (var base = first_seen(last, p.window); base <= last; base += WG) {
        let n_keys = min(WG, last + 1u - base);
        let src = (((base + lid) % p.n_slots) * p.n_kv_head + kv_head) * n4;
        var s = LOWEST;
        if (lid < n_keys) {
            s = 0.0;
            for (var d = 0u; d < n4; d++) {
                s += dot(query[d], kv_four(k_cache[(src + d) >> KV_F16], src + d));
            }
        }
        place[lid] = src;
        score[lid] = s;
        workgroupBarrier();
        var new_top = top;
        for (var j = 0u; j < n_keys; j++) {
            new_top = max(new_top, score[j]);
        }
        prob[lid] = select(0.0, exp(s - new_top), lid < n_keys);
        workgroupBarrier();
        let older = exp(top - new_top);
        top = new_top;
        total *= older;
        for (var j = 0u; j < n_keys; j++) {
            total += prob[j];
        }
        for (var d = lid; d < n4; d += WG) {
            var sum = out[d] * older;
            for (var j = 0u; j < n_keys; j++) {
                let i = place[j] + d;
                sum += prob[j] * kv_four(v_cache[i >> KV_F16], i);
            }
            out[d] = sum;
        }
        workgroupBarrier(); // before the next tile's keys
    }
    for (var d = lid; d < n4; d += WG) {
        y[index * n4 + d] = out[d] / total;
    }
}
