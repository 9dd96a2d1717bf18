// heads_write - each head of q and k: norm, weight, rotation; each head of v: norm; all in place,
//   and k and v of row t become position pos + pos_offset + t of the cache, in slot position %
//   n_slots
//
//   table    read    rows x 2 n_pair f32: cosines, sines
//   q_w      read    head_dim f32
//   k_w      read    head_dim f32
//   q        update  rows x n_head x head_dim f32
//   k        update  rows x n_kv_head x head_dim f32
//   v        update  rows x n_kv_head x head_dim f32
//   k_cache  update  n_slots x n_kv_head x head_dim
//   v_cache  update  n_slots x n_kv_head x head_dim
//   grid   rows * (n_head + n_kv_head)
//   bytes  2 reads + 1 write an element, k and v twice
//   needs  head_dim % 4 == 0 (KV_F16: the cache's rows % 8 == 0), rows <= n_slots; n_head 0: q and
//          q_w are any buffers, unread
//
// Everything between the projections and attention in one dispatch. KV_F16: a cache of halves.
// Reference: the nodes of rule heads_write, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sum
// here, f64 there; KV_F16: one rounding to half.

//!axis tier plain subgroup
//!include lib/base.wgsl
//!include lib/sum.wgsl
//!include lib/step.wgsl

struct Params {
    rows : u32,
    n_head : u32, // of q; 0: keys and values only
    n_kv_head : u32,
    head_dim : u32,
    n_pair : u32,
    n_slots : u32,
    pos_offset : u32,
    v_from_k : u32, // 1: values are the norm of the raw keys
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind table read array<f32>
//!bind q_w read array<vec2<f32>>
//!bind k_w read array<vec2<f32>>
//!bind q update array<vec2<f32>>
//!bind k update array<vec2<f32>>
//!bind v update array<vec2<f32>>
//!bind k_cache update array<u32>
//!bind v_cache update array<u32>
//!include lib/kv.wgsl

override WG : u32 = 64u;

// Columns 2i, 2i + 1 of a head, and those half a head later with which they are rotated.
struct Four {
    a : vec2<f32>,
    b : vec2<f32>,
}

// Pairs of columns in half a head.
fn quarter() -> u32 {
    return p.head_dim / 4u;
}

fn squares_of(f : Four) -> f32 {
    return dot(f.a, f.a) + dot(f.b, f.b);
}

fn inverse_rms(squares : f32) -> f32 {
    return inverseSqrt(squares / f32(p.head_dim) + p.eps);
}

fn rotated(f : Four, i : u32, row : u32) -> Four {
    var out = f;
    for (var c = 0u; c < 2u; c++) {
        let pair = 2u * i + c;
        if (pair < p.n_pair) {
            let cosine = table[row * 2u * p.n_pair + pair];
            let sine = table[row * 2u * p.n_pair + p.n_pair + pair];
            out.a[c] = f.a[c] * cosine - f.b[c] * sine;
            out.b[c] = f.a[c] * sine + f.b[c] * cosine;
        }
    }
    return out;
}

fn k_at(at : u32) -> Four {
    return Four(k[at], k[at + quarter()]);
}

fn v_at(at : u32) -> Four {
    if (p.v_from_k == 1u) {
        return k_at(at);
    }
    return Four(v[at], v[at + quarter()]);
}

fn put_k(at : u32, z : vec2<f32>) {
    if (KV_F16 == 1u) {
        let h = half_bits(vec4<f32>(z, z));
        k_cache[at] = h.x | (h.y << 16u);
    } else {
        let words = bitcast<vec2<u32>>(z);
        k_cache[2u * at] = words.x;
        k_cache[2u * at + 1u] = words.y;
    }
}

fn put_v(at : u32, z : vec2<f32>) {
    if (KV_F16 == 1u) {
        let h = half_bits(vec4<f32>(z, z));
        v_cache[at] = h.x | (h.y << 16u);
    } else {
        let words = bitcast<vec2<u32>>(z);
        v_cache[2u * at] = words.x;
        v_cache[2u * at + 1u] = words.y;
    }
}

fn query_head(head : u32, lid : u32) {
    let at = head * 2u * quarter();
    var squares = 0.0;
    for (var i = lid; i < quarter(); i += WG) {
        squares += squares_of(Four(q[at + i], q[at + i + quarter()]));
    }
    let inverse = inverse_rms(workgroup_sum(squares, lid));
    for (var i = lid; i < quarter(); i += WG) {
        let j = i + quarter();
        let f = rotated(Four(q[at + i] * inverse * q_w[i], q[at + j] * inverse * q_w[j]), i,
                       head / p.n_head);
        q[at + i] = f.a;
        q[at + j] = f.b;
    }
}

// Of the keys and of the values: a thread reads its columns of both before it writes either.
fn key_head(head : u32, lid : u32) {
    let at = head * 2u * quarter();
    var k_squares = 0.0;
    var v_squares = 0.0;
    for (var i = lid; i < quarter(); i += WG) {
        k_squares += squares_of(k_at(at + i));
        v_squares += squares_of(v_at(at + i));
    }
    let k_inverse = inverse_rms(workgroup_sum(k_squares, lid));
    workgroupBarrier(); // before the second sum
    let v_inverse = inverse_rms(workgroup_sum(v_squares, lid));
    let row = head / p.n_kv_head;
    let slot = (step.pos + p.pos_offset + row) % p.n_slots;
    let to = (slot * p.n_kv_head + head % p.n_kv_head) * 2u * quarter();
    for (var i = lid; i < quarter(); i += WG) {
        let j = i + quarter();
        let raw = k_at(at + i);
        let value = v_at(at + i);
        let key = rotated(Four(raw.a * k_inverse * k_w[i], raw.b * k_inverse * k_w[j]), i, row);
        k[at + i] = key.a;
        k[at + j] = key.b;
        v[at + i] = value.a * v_inverse;
        v[at + j] = value.b * v_inverse;
        put_k(to + i, key.a);
        put_k(to + j, key.b);
        put_v(to + i, value.a * v_inverse);
        put_v(to + j, value.b * v_inverse);
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let index = flat_group(wid, num);
    let n_q = p.rows * p.n_head;
    if (index < n_q) {
        query_head(index, lid);
    } else if (index < n_q + p.rows * p.n_kv_head) {
        key_head(index - n_q, lid);
    }
}
