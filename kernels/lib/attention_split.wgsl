// attention_split - what attention_split, attend and attend_shared have in common: which share of the history a
// workgroup has, attention over it, and the result. Needs p with the fields of attention_split's Params, the
// buffers k_cache, v_cache and partial, and query(part, head, d): four columns of a query head.
//!include lib/grid.wgsl
//!include lib/step.wgsl
//!include lib/span.wgsl
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
    var s = Scores();
    for (var d = lane; d < n4; d += lanes) {
        let k = kv_four(k_cache[(src + d) >> KV_F16], src + d);
        s.a.x += dot(k, query(part, 0u, d));
        if (HEADS > 1u) {
            s.a.y += dot(k, query(part, min(1u, end), d));
        }
        if (HEADS > 2u) {
            s.a.z += dot(k, query(part, min(2u, end), d));
            s.a.w += dot(k, query(part, min(3u, end), d));
        }
        if (HEADS > 4u) {
            s.b.x += dot(k, query(part, min(4u, end), d));
            s.b.y += dot(k, query(part, min(5u, end), d));
            s.b.z += dot(k, query(part, min(6u, end), d));
            s.b.w += dot(k, query(part, min(7u, end), d));
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

const TILE : u32 = 32u;  // keys
const LANES : u32 = 8u;  // threads that share a key's dot product
const PITCH : u32 = 36u; // of a lane's row of `spread`: 32 keys and a gap, so that banks differ
const HEAD : u32 = LANES * PITCH;

var<workgroup> score : array<f32, 256>; // head x key
var<workgroup> prob : array<f32, 256>;  // key x 8 heads
var<workgroup> shrink : array<f32, 8>;  // head: what older tiles are worth under the new maximum

// Attention over the part's share of the history. A tile is 32 keys: 8 lanes a key for the dots, then (head, key)
// threads for the softmax, then threads over (slice of keys, 4 columns) for the values.
fn attend_share(part : Part, lid : u32) {
    let n4 = p.head_dim / 4u;
    let key = lid / LANES; // in the first phase
    let lane = lid % LANES;
    let my_head = lid / TILE; // in the second
    let my_key = lid % TILE;
    let slices = WG / n4; // in the third
    let slice = lid / n4;
    let col = lid % n4;

    var top = LOWEST;
    var total = 0.0;
    var o0 = vec4<f32>();
    var o1 = vec4<f32>();
    var o2 = vec4<f32>();
    var o3 = vec4<f32>();
    var o4 = vec4<f32>();
    var o5 = vec4<f32>();
    var o6 = vec4<f32>();
    var o7 = vec4<f32>();

    for (var base = part.lo; base < part.hi; base += TILE) {
        let n_keys = min(TILE, part.hi - base);
        let slot0 = base % p.n_slots;

        var d = Scores();
        if (key < n_keys) {
            d = dots_of(vectors_at(slot0, key, part.kv_head), part, lane, LANES);
        }
        let to = lane * PITCH + key;
        spread[to] = d.a.x;
        if (HEADS > 1u) {
            spread[to + HEAD] = d.a.y;
        }
        if (HEADS > 2u) {
            spread[to + 2u * HEAD] = d.a.z;
            spread[to + 3u * HEAD] = d.a.w;
        }
        if (HEADS > 4u) {
            spread[to + 4u * HEAD] = d.b.x;
            spread[to + 5u * HEAD] = d.b.y;
            spread[to + 6u * HEAD] = d.b.z;
            spread[to + 7u * HEAD] = d.b.w;
        }
        workgroupBarrier();

        var s = LOWEST;
        if (my_head < HEADS && my_key < n_keys) {
            s = 0.0;
            for (var j = 0u; j < LANES; j++) {
                s += spread[my_head * HEAD + j * PITCH + my_key];
            }
        }
        score[lid] = s;
        workgroupBarrier();

        if (my_head < HEADS) {
            var new_top = top;
            for (var j = 0u; j < TILE; j++) {
                new_top = max(new_top, score[my_head * TILE + j]);
            }
            let e = select(0.0, exp(s - new_top), my_key < n_keys);
            let older = exp(top - new_top);
            prob[my_key * 8u + my_head] = e;
            if (my_key == 0u) {
                shrink[my_head] = older;
            }
            total = total * older + e;
            top = new_top;
        }
        workgroupBarrier();

        o0 *= shrink[0];
        o1 *= shrink[1];
        o2 *= shrink[2];
        o3 *= shrink[3];
        o4 *= shrink[4];
        o5 *= shrink[5];
        o6 *= shrink[6];
        o7 *= shrink[7];
        if (slice < slices) {
            for (var j = slice; j < n_keys; j += slices) {
                let i = vectors_at(slot0, j, part.kv_head) + col;
                let v = kv_four(v_cache[i >> KV_F16], i);
                o0 += prob[j * 8u] * v;
                if (HEADS > 1u) {
                    o1 += prob[j * 8u + 1u] * v;
                }
                if (HEADS > 2u) {
                    o2 += prob[j * 8u + 2u] * v;
                    o3 += prob[j * 8u + 3u] * v;
                }
                if (HEADS > 4u) {
                    o4 += prob[j * 8u + 4u] * v;
                    o5 += prob[j * 8u + 5u] * v;
                    o6 += prob[j * 8u + 6u] * v;
                    o7 += prob[j * 8u + 7u] * v;
                }
            }
        }
    }

    // The sum of a head's exponentials is spread over its 32 threads.
    score[lid] = total;
    workgroupBarrier();
    if (my_head < part.n_head && my_key == 0u) {
        for (var j = 1u; j < TILE; j++) {
            total += score[lid + j];
        }
        partial[partial_at(part, my_head) + n4] = vec4<f32>(top, total, 0.0, 0.0);
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
