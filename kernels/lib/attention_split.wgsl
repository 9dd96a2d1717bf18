// attention_split - what the tiers of the kernel of that name share: its bindings, which share of the
// history a workgroup has, the dot products of a key with all heads, and the end.
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
    n_split : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(2) var<storage, read> q : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> k_cache : array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> v_cache : array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> partial : array<vec4<f32>>;
//!include lib/kv.wgsl

override HEADS : u32 = 8u; // 1, 2, 4 or 8

const WG : u32 = 256u;
const ROUND : u32 = 32u; // shares are multiples of this many keys
const LOWEST : f32 = -3.0e38;

var<workgroup> spread : array<f32, 2304>; // at the end 2 heads x 4 columns x thread

// What one workgroup does.
struct Part {
    exists : bool,
    kv_head : u32,
    n_head : u32, // heads of it, at most HEADS
    row_q : u32,  // the first of them, counted over rows: its vectors in q
    split : u32,
    lo : u32, // positions [lo, hi)
    hi : u32,
}

fn part_of(index : u32) -> Part {
    let group = p.n_head / p.n_kv_head;
    let chunks = (group + HEADS - 1u) / HEADS;
    let split = index % p.n_split;
    let chunk = index / p.n_split % chunks;
    let kv_head = index / p.n_split / chunks % p.n_kv_head;
    let row = index / p.n_split / chunks / p.n_kv_head;
    let last = step.pos + p.pos_offset + row;
    let first = first_seen(last, p.window);
    let n_seen = last + 1u - first;
    let share = (n_seen + p.n_split * ROUND - 1u) / (p.n_split * ROUND) * ROUND;
    return Part(row < p.rows, kv_head, min(HEADS, group - chunk * HEADS),
                row * p.n_head + kv_head * group + chunk * HEADS, split,
                first + min(split * share, n_seen), first + min(split * share + share, n_seen));
}

// Where in the cache the vectors of slot0 + j are, once around the ring at most.
fn vectors_at(slot0 : u32, j : u32, kv_head : u32) -> u32 {
    var slot = slot0 + j;
    if (slot >= p.n_slots) {
        slot -= p.n_slots;
    }
    return (slot * p.n_kv_head + kv_head) * (p.head_dim / 4u);
}

struct Scores {
    a : vec4<f32>, // heads 0 .. 3
    b : vec4<f32>, // heads 4 .. 7
}

// This lane's part of the dot products of the key at `src` with all heads. Heads past the last one repeat
// it: computed, never stored.
fn dots_of(src : u32, part : Part, lane : u32, lanes : u32) -> Scores {
    let n4 = p.head_dim / 4u;
    let end = part.n_head - 1u;
    let q0 = part.row_q * n4;
    let q1 = (part.row_q + min(1u, end)) * n4;
    let q2 = (part.row_q + min(2u, end)) * n4;
    let q3 = (part.row_q + min(3u, end)) * n4;
    let q4 = (part.row_q + min(4u, end)) * n4;
    let q5 = (part.row_q + min(5u, end)) * n4;
    let q6 = (part.row_q + min(6u, end)) * n4;
    let q7 = (part.row_q + min(7u, end)) * n4;
    var s = Scores();
    for (var d = lane; d < n4; d += lanes) {
        let k = kv_four(k_cache[(src + d) >> KV_F16], src + d);
        s.a.x += dot(k, q[q0 + d]);
        if (HEADS > 1u) {
            s.a.y += dot(k, q[q1 + d]);
        }
        if (HEADS > 2u) {
            s.a.z += dot(k, q[q2 + d]);
            s.a.w += dot(k, q[q3 + d]);
        }
        if (HEADS > 4u) {
            s.b.x += dot(k, q[q4 + d]);
            s.b.y += dot(k, q[q5 + d]);
            s.b.z += dot(k, q[q6 + d]);
            s.b.w += dot(k, q[q7 + d]);
        }
    }
    return s;
}

// Head `head` of the part: where its share's result begins in `partial`.
fn partial_at(part : Part, head : u32) -> u32 {
    return ((part.row_q + head) * p.n_split + part.split) * (p.head_dim / 4u + 1u);
}

// The values of two heads, spread over slices of keys: thread slice * n4 + col has a sum of `col`.
fn store_two(part : Part, head : u32, a : vec4<f32>, b : vec4<f32>, lid : u32) {
    let n4 = p.head_dim / 4u;
    spread[lid] = a.x;
    spread[WG + lid] = a.y;
    spread[2u * WG + lid] = a.z;
    spread[3u * WG + lid] = a.w;
    spread[4u * WG + lid] = b.x;
    spread[5u * WG + lid] = b.y;
    spread[6u * WG + lid] = b.z;
    spread[7u * WG + lid] = b.w;
    workgroupBarrier();
    // Threads below n4 finish the first of the two, the next n4 the second.
    let which = lid / n4;
    let col = lid % n4;
    if (which < 2u && head + which < part.n_head) {
        var sum = vec4<f32>();
        for (var j = 0u; j < WG / n4; j++) {
            let src = which * 4u * WG + j * n4 + col;
            sum += vec4<f32>(spread[src], spread[src + WG], spread[src + 2u * WG], spread[src + 3u * WG]);
        }
        partial[partial_at(part, head + which) + col] = sum;
    }
    workgroupBarrier();
}
