// put_new - the key and the value of the newest position, normalised, weighted and turned, on their way to the cache. Needs lib/attend, k_weight(i):
// columns 4i .. 4i + 3 of what keys are multiplied with; raw_key(i) and raw_value(i), vec4 i of what the products gave.
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

// Squares of the new key and value, by threads; then eight sums of each.
fn put_squares(part : Part, lid : u32) {
    var key = 0.0;
    var value = 0.0;
    if (lid < head4()) {
        let at = part.kv_head * head4() + lid;
        let raw = raw_value(at);
        let raw_k = raw_key(at);
        key = dot(raw_k, raw_k);
        value = dot(raw, raw);
    }
    spread[lid] = key;
    spread[WG + lid] = value;
}

fn sum_squares(lid : u32) {
    if (lid >= 64u && lid < 80u) {
        var sum = 0.0;
        for (var turn = 0u; turn < MOST_TURNS; turn++) {
            let i = lid % 8u + 8u * turn;
            if (i >= head4()) {
                break;
            }
            sum += spread[(lid - 64u) / 8u * WG + i];
        }
        some[lid] = sum;
    }
}

// The new position of this kv head, by the first head_dim / 8 threads.
fn put_new(part : Part, lid : u32) {
    let n4 = head4();
    if (lid >= n4 / 2u) {
        return;
    }
    let k_inverse = inverse_rms(sum_eight(64u));
    let v_inverse = inverse_rms(sum_eight(72u));
    let source = part.kv_head * n4;
    let to = (slot_of(part.hi - 1u) * p.n_kv_head + part.kv_head) * n4;
    let j = lid + n4 / 2u;
    let f = turned(raw_key(source + lid) * k_inverse * k_weight(lid), raw_key(source + j) * k_inverse * k_weight(j), lid);
    put_key(to + lid, f.a);
    put_key(to + j, f.b);
    put_value(to + lid, raw_value(source + lid) * v_inverse);
    put_value(to + j, raw_value(source + j) * v_inverse);
}

// The whole workgroup takes part, and all that comes before a share.
fn put_heads(part : Part, lid : u32) {
    let has_new = part.lo < part.hi && part.hi == step.pos + p.pos_offset + 1u;
    put_queries(part, lid);
    if (has_new) {
        put_squares(part, lid);
    }
    workgroupBarrier();
    sum_queries(lid);
    if (has_new) {
        sum_squares(lid);
        workgroupBarrier();
        put_new(part, lid);
        workgroupBarrier();
        storageBarrier();
    }
}
