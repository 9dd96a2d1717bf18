// attend_new - the kernels attend and attend_lora, but for the last buffers and what comes after a share: lib/share_z.
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
@group(0) @binding(2) var<storage, read> table : array<f32>;
@group(0) @binding(3) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> q : array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> k : array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> v : array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> k_cache : array<vec4<u32>>;
@group(0) @binding(8) var<storage, read_write> v_cache : array<vec4<u32>>;
fn q_weight(i : u32) -> vec4<f32> {
    return vectors[p.q_weight_at + i];
}

fn k_weight(i : u32) -> vec4<f32> {
    return vectors[p.k_weight_at + i];
}

fn raw_value(at : u32) -> vec4<f32> {
    if (p.v_from_k == 1u) {
        return k[at];
    }
    return v[at];
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

// Squares of the new key and value, by threads; then eight sums of each.
fn put_squares(part : Part, lid : u32) {
    var key = 0.0;
    var value = 0.0;
    if (lid < head4()) {
        let at = part.kv_head * head4() + lid;
        let raw = raw_value(at);
        key = dot(k[at], k[at]);
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
    let f = turned(k[source + lid] * k_inverse * k_weight(lid), k[source + j] * k_inverse * k_weight(j), lid);
    put_key(to + lid, f.a);
    put_key(to + j, f.b);
    put_value(to + lid, raw_value(source + lid) * v_inverse);
    put_value(to + j, raw_value(source + j) * v_inverse);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let part = part_of(flat_group(wid, num));
    if (!part.exists) {
        return;
    }
    let has_new = part.lo < part.hi && part.hi == step.pos + p.pos_offset + 1u;
    begin_share_z(part, lid);
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
    attend_share(part, lid);
    put_share_z(part, lid);
}
