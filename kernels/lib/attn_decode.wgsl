// attn_decode - the kernels attn_decode, attn_decode_single, attn_decode_lora and
// attn_decode_shared, but for what becomes of a split: the queries of a workgroup's heads, weighted
// and rotated, in workgroup memory, then attention over a split. The norm of a query is a factor of
// its scores, which is known later.
//
// axis cache  written: the row's key and value are computed too, and become a position of the cache
//             read: the cache is another layer's, and the kernel has the buffers table and q,
//             q_weight(i): columns 4i .. 4i + 3 of the weight of the queries' norm, and q_four(i):
//             vec4 i of the queries

//!include lib/attention_split.wgsl

override QUERIES : u32 = 1024u; // HEADS x head_dim / 4 at least

var<workgroup> queries : array<vec4<f32>, QUERIES>;
var<workgroup> squares : array<f32, WG>; // of the queries, by threads
// eight sums of them for each of 8 heads; of the key's and the value's in `spread`
var<workgroup> some : array<f32, 80>;

// Columns 4i .. 4i + 3 of a head, and those half a head later with which they are rotated.
struct Turned {
    a : vec4<f32>,
    b : vec4<f32>,
}

fn query(part : Part, head : u32, d : u32) -> vec4<f32> {
    return queries[head * head4() + d];
}

// Cosines and sines by which columns 4i .. 4i + 3 of half a head are rotated.
struct Angles {
    cosine : vec4<f32>,
    sine : vec4<f32>,
}

fn angles(i : u32) -> Angles {
    var out = Angles(vec4<f32>(1.0), vec4<f32>());
    for (var c = 0u; c < 4u; c++) {
        let pair = 4u * i + c;
        if (pair < p.n_pair) {
            out.cosine[c] = table[pair];
            out.sine[c] = table[p.n_pair + pair];
        }
    }
    return out;
}

fn rotated(a : vec4<f32>, b : vec4<f32>, by : Angles) -> Turned {
    return Turned(a * by.cosine - b * by.sine, a * by.sine + b * by.cosine);
}

fn inverse_rms(total : f32) -> f32 {
    return inverseSqrt(total / f32(4u * head4()) + p.eps);
}

// Of eight sums in `some`.
fn sum_eight(first : u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < 8u; i++) {
        sum += some[first + i];
    }
    return sum;
}

fn query_scale(head : u32) -> f32 {
    return inverse_rms(sum_eight(8u * head));
}

// Where a thread's head begins in the queries: WG / HEADS threads share one.
fn query_at(part : Part, lid : u32) -> u32 {
    return (part.row_q + min(lid / (WG / HEADS), part.n_head - 1u)) * head4();
}

// The weights of a query's columns 4i .. 4i + 3 of both halves.
struct Weights {
    a : vec4<f32>,
    b : vec4<f32>,
    by : Angles,
}

fn query_weights(i : u32) -> Weights {
    return Weights(q_weight(i), q_weight(i + head4() / 2u), angles(i));
}

// Returns their part of the sum of squares.
fn put_query(head : u32, i : u32, a : vec4<f32>, b : vec4<f32>, w : Weights) -> f32 {
    let f = rotated(a * w.a, b * w.b, w.by);
    queries[head * head4() + i] = f.a;
    queries[head * head4() + i + head4() / 2u] = f.b;
    return dot(a, a) + dot(b, b);
}

// sum_queries() may be called after a barrier.
fn put_queries(part : Part, lid : u32) {
    let half = head4() / 2u;
    let threads = WG / HEADS;
    let at = query_at(part, lid);
    var sum = 0.0;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let i = lid % threads + turn * threads;
        if (i >= half) {
            break;
        }
        sum += put_query(lid / threads, i, q_four(at + i), q_four(at + i + half), query_weights(i));
    }
    squares[lid] = sum;
}

// Only so many threads of a head had columns.
fn sum_queries(lid : u32) {
    if (lid < 8u * HEADS) {
        let threads = min(WG / HEADS, head4() / 2u);
        var sum = 0.0;
        for (var turn = 0u; turn < MOST_TURNS; turn++) {
            let i = lid % 8u + 8u * turn;
            if (i >= threads) {
                break;
            }
            sum += squares[lid / 8u * (WG / HEADS) + i];
        }
        some[lid] = sum;
    }
}

//!if split == partial_z
// The product that reads a split has adapters: behind the split lies its part of z = A o. Needs p
// with rank (a multiple of 8, 0 without LORA), and the buffer a.
//!include lib/lora.wgsl

override LORA : u32 = 0u; // 1: the product after it has adapters; then HEADS is 1

fn split4() -> u32 {
    return head4() + 1u + p.rank / 4u;
}

fn put_four(part : Part, head : u32, i : u32, o : vec4<f32>) {
    partial[partial_at(part, head) + i] = o;
    if (HEADS == 1u) {
        queries[i] = o; // the queries are not read any more
    }
}

fn o_four(i : u32) -> vec4<f32> {
    return queries[i];
}

var<private> z_to : u32; // where the split's part of z begins in partial

fn put_z(k : u32, z : f32) {
    partial[z_to + k / 4u][k % 4u] = z;
}

// Before attend_split().
fn before_share(part : Part, lid : u32) {
    if (LORA == 1u) {
        begin_z(part.row_q * head4(), head4(), p.n_head * head4(), lid);
    }
}

// After attend_split(): the split's part of z = A o, for the adapters of the next product.
fn after_share(part : Part, lid : u32) {
    if (LORA == 1u && part.lo < part.hi) {
        z_to = partial_at(part, 0u) + head4() + 1u;
        make_z(part.row_q * head4(), head4(), p.n_head * head4(), lid);
    }
}
//!end

//!if cache == written
struct Params {
    rows : u32,
    n_head : u32,
    n_kv_head : u32,
    head_dim : u32,
    n_slots : u32,
    window : u32, // 0: all
    pos_offset : u32,
    n_split : u32,
    n_pair : u32,
    q_weight_at : u32,
    k_weight_at : u32,
    v_from_k : u32, // 1: values are the norm of the raw keys
    eps : f32,
    rank : u32, // where split is partial_z: rows of A
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind table read array<f32>
//!bind vectors read array<vec4<f32>>
//!bind q read array<vec4<f32>>
//!bind k read array<vec4<f32>>
//!bind v read array<vec4<f32>>
//!bind k_cache update array<vec4<u32>>
//!bind v_cache update array<vec4<u32>>

fn q_weight(i : u32) -> vec4<f32> {
    return vectors[p.q_weight_at + i];
}

fn k_weight(i : u32) -> vec4<f32> {
    return vectors[p.k_weight_at + i];
}

fn q_four(i : u32) -> vec4<f32> {
    return q[i];
}

fn raw_key(i : u32) -> vec4<f32> {
    return k[i];
}

fn raw_value(i : u32) -> vec4<f32> {
    if (p.v_from_k == 1u) {
        return k[i];
    }
    return v[i];
}

// Four numbers as words of the cache: two words of halves, or four.
fn put_key(at : u32, x : vec4<f32>) {
    if (KV_F16 == 1u) {
        let h = half_bits(x);
        k_cache[at >> 1u][2u * (at & 1u)] = h.x | (h.y << 16u);
        k_cache[at >> 1u][2u * (at & 1u) + 1u] = h.z | (h.w << 16u);
    } else {
        k_cache[at] = bitcast<vec4<u32>>(x);
    }
}

fn put_value(at : u32, x : vec4<f32>) {
    if (KV_F16 == 1u) {
        let h = half_bits(x);
        v_cache[at >> 1u][2u * (at & 1u)] = h.x | (h.y << 16u);
        v_cache[at >> 1u][2u * (at & 1u) + 1u] = h.z | (h.w << 16u);
    } else {
        v_cache[at] = bitcast<vec4<u32>>(x);
    }
}

// What a thread has of the new key and value, columns 4i .. 4i + 3 of both halves, and the key's
// weights.
struct New {
    key_a : vec4<f32>,
    key_b : vec4<f32>,
    value_a : vec4<f32>,
    value_b : vec4<f32>,
    w : Weights,
}

fn new_four(part : Part, i : u32) -> New {
    let at = part.kv_head * head4() + i;
    let half = head4() / 2u;
    return New(raw_key(at), raw_key(at + half), raw_value(at), raw_value(at + half),
               Weights(k_weight(i), k_weight(i + half), angles(i)));
}

// Squares of the new key and value, by the first head_dim / 8 threads; then eight sums of each.
fn put_squares(n : New, lid : u32) {
    if (lid < head4() / 2u) {
        spread[lid] = dot(n.key_a, n.key_a) + dot(n.key_b, n.key_b);
        spread[WG + lid] = dot(n.value_a, n.value_a) + dot(n.value_b, n.value_b);
    }
}

fn sum_squares(lid : u32) {
    if (lid >= 64u && lid < 80u) {
        var sum = 0.0;
        for (var turn = 0u; turn < MOST_TURNS; turn++) {
            let i = lid % 8u + 8u * turn;
            if (i >= head4() / 2u) {
                break;
            }
            sum += spread[(lid - 64u) / 8u * WG + i];
        }
        some[lid] = sum;
    }
}

// The new position of this kv head, by the same threads.
fn put_new(part : Part, n : New, lid : u32) {
    let half = head4() / 2u;
    if (lid >= half) {
        return;
    }
    let k_inverse = inverse_rms(sum_eight(64u));
    let v_inverse = inverse_rms(sum_eight(72u));
    let to = (slot_of(part.hi - 1u) * p.n_kv_head + part.kv_head) * head4() + lid;
    let f = rotated(n.key_a * k_inverse * n.w.a, n.key_b * k_inverse * n.w.b, n.w.by);
    put_key(to, f.a);
    put_key(to + half, f.b);
    put_value(to, n.value_a * v_inverse);
    put_value(to + half, n.value_b * v_inverse);
}

fn has_new(part : Part) -> bool {
    return part.lo < part.hi && part.hi == step.pos + p.pos_offset + 1u;
}

// Everything before a split but the queries. The whole workgroup takes part. n is only read where
// there are new keys.
fn put_heads(part : Part, n : New, lid : u32) {
    let news = has_new(part);
    if (news) {
        put_squares(n, lid);
    }
    workgroupBarrier();
    sum_queries(lid);
    if (news) {
        sum_squares(lid);
        workgroupBarrier();
        put_new(part, n, lid);
        workgroupBarrier();
        storageBarrier();
    }
}
//!end

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let part = part_of(flat_group(wid, num));
    if (!part.exists) {
        return;
    }
    before_share(part, lid);
    put_queries(part, lid);
//!if cache == written
    var n = New();
    if (has_new(part) && lid < head4() / 2u) {
        n = new_four(part, lid);
    }
    put_heads(part, n, lid);
//!else
    workgroupBarrier();
    sum_queries(lid);
//!end
    attend_split(part, lid);
    after_share(part, lid);
}
