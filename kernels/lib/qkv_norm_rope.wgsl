// qkv_norm_rope - the kernel of the same name without its sum, which a tier chooses.
//!include lib/grid.wgsl
//!include lib/step.wgsl

struct Params {
    rows : u32,
    n_head : u32,
    n_kv_head : u32,
    head_dim : u32,
    n_pair : u32,
    n_slots : u32,
    pos_offset : u32,
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(2) var<storage, read> table : array<f32>;
@group(0) @binding(3) var<storage, read> q_w : array<vec2<f32>>;
@group(0) @binding(4) var<storage, read> k_w : array<vec2<f32>>;
@group(0) @binding(5) var<storage, read> k : array<vec2<f32>>;
@group(0) @binding(6) var<storage, read> v : array<vec2<f32>>;
@group(0) @binding(7) var<storage, read_write> q : array<vec2<f32>>;
@group(0) @binding(8) var<storage, read_write> k_cache : array<u32>;
@group(0) @binding(9) var<storage, read_write> v_cache : array<u32>;

override WG : u32 = 64u;
override KV_F16 : u32 = 0u; // as in lib/kv.wgsl

const Q : u32 = 0u;
const K : u32 = 1u;
const V : u32 = 2u;

// Columns 2i, 2i + 1 of head `head` of q, k or v.
fn load(what : u32, head : u32, i : u32) -> vec2<f32> {
    let at = head * (p.head_dim / 2u) + i;
    if (what == Q) {
        return q[at];
    }
    if (what == K) {
        return k[at];
    }
    return v[at];
}

// The same columns to q, or to the row's slot of the cache.
fn store(what : u32, head : u32, i : u32, z : vec2<f32>) {
    if (what == Q) {
        q[head * (p.head_dim / 2u) + i] = z;
        return;
    }
    let slot = (step.pos + p.pos_offset + head / p.n_kv_head) % p.n_slots;
    let at = (slot * p.n_kv_head + head % p.n_kv_head) * (p.head_dim / 2u) + i;
    if (KV_F16 != 0u) {
        let word = pack2x16float(z);
        if (what == K) {
            k_cache[at] = word;
        } else {
            v_cache[at] = word;
        }
    } else {
        let words = bitcast<vec2<u32>>(z);
        if (what == K) {
            k_cache[2u * at] = words.x;
            k_cache[2u * at + 1u] = words.y;
        } else {
            v_cache[2u * at] = words.x;
            v_cache[2u * at + 1u] = words.y;
        }
    }
}

fn weight(what : u32, i : u32) -> vec2<f32> {
    if (what == Q) {
        return q_w[i];
    }
    if (what == K) {
        return k_w[i];
    }
    return vec2<f32>(1.0);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let index = flat_group(wid, num);
    let n_q = p.rows * p.n_head; // heads of q, then those of k, then those of v
    let n_k = p.rows * p.n_kv_head;
    if (index >= n_q + 2u * n_k) {
        return;
    }
    var what = Q;
    var head = index;
    var row = index / p.n_head;
    if (index >= n_q) {
        what = select(K, V, index >= n_q + n_k);
        head = (index - n_q) % n_k;
        row = head / p.n_kv_head;
    }
    let quarter = p.head_dim / 4u; // pairs of columns in half a head
    var squares = 0.0;
    for (var i = lid; i < quarter; i += WG) {
        let a = load(what, head, i);
        let b = load(what, head, i + quarter);
        squares += dot(a, a) + dot(b, b);
    }
    let inverse = inverseSqrt(workgroup_sum(squares, lid) / f32(p.head_dim) + p.eps);
    let turn = row * 2u * p.n_pair;
    for (var i = lid; i < quarter; i += WG) {
        var a = load(what, head, i) * inverse * weight(what, i);
        var b = load(what, head, i + quarter) * inverse * weight(what, i + quarter);
        for (var c = 0u; c < 2u; c++) {
            let pair = 2u * i + c;
            if (what != V && pair < p.n_pair) {
                let cosine = table[turn + pair];
                let sine = table[turn + p.n_pair + pair];
                let turned = a[c] * cosine - b[c] * sine;
                b[c] = a[c] * sine + b[c] * cosine;
                a[c] = turned;
            }
        }
        store(what, head, i, a);
        store(what, head, i + quarter, b);
    }
}
