// attend_new - the kernels attend, attend_alone and attend_lora, but for the last buffers and what becomes of a share: before_share() and
// after_share(), and what lib/attention_split needs for it.
//!include lib/attend.wgsl

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
    v_from_k : u32, // 1: values are made of the keys as they come
    eps : f32,
    rank : u32, // with lib/share_z: rows of A
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

// What a thread has of the new key and value, columns 4i .. 4i + 3 of both halves, and what the key is multiplied with.
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
    let f = turned(n.key_a * k_inverse * n.w.a, n.key_b * k_inverse * n.w.b, n.w.by);
    put_key(to, f.a);
    put_key(to + half, f.b);
    put_value(to, n.value_a * v_inverse);
    put_value(to + half, n.value_b * v_inverse);
}

fn has_new(part : Part) -> bool {
    return part.lo < part.hi && part.hi == step.pos + p.pos_offset + 1u;
}

// The whole workgroup takes part, and all that comes before a share but the queries. n is only looked at where there is something new.
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

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let part = part_of(flat_group(wid, num));
    if (!part.exists) {
        return;
    }
    before_share(part, lid);
    put_queries(part, lid);
    var n = New();
    if (has_new(part) && lid < head4() / 2u) {
        n = new_four(part, lid);
    }
    put_heads(part, n, lid);
    attend_share(part, lid);
    after_share(part, lid);
}
