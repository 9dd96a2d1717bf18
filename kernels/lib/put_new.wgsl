// put_new - the key and the value of the newest position, normalised, weighted and turned, on their way to the cache. Needs lib/attend, k_weight(i):
// columns 4i .. 4i + 3 of what keys are multiplied with; new_four() also raw_key(i) and raw_value(i), vec4 i of what the products gave.
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

fn key_weights(i : u32) -> Weights {
    return Weights(k_weight(i), k_weight(i + head4() / 2u), angles(i));
}

fn new_four(part : Part, i : u32) -> New {
    let at = part.kv_head * head4() + i;
    let half = head4() / 2u;
    return New(raw_key(at), raw_key(at + half), raw_value(at), raw_value(at + half), key_weights(i));
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
