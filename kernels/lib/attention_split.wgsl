// attention_split - which split of the history a workgroup has, attention over it, and the result:
// what attention_split and attn_decode* have in common. Needs p with the fields of
// attention_split's Params, the buffers k_cache and v_cache, query(part, head, d): four columns of
// a query head, and query_scale(head): what its scores are multiplied with, which is asked after a
// barrier.
//
// axis split: partial: it goes to the buffer `partial`; partial_z: with its part of z = A o behind
// it, see lib/attn_decode; whole: the kernel says what becomes of a head's result, put_end(part,
// head, top, total) and put_four(part, head, i, o) of its vec4 i, and what is before and after it.
//!include lib/base.wgsl
//!include lib/step.wgsl
//!include lib/kv.wgsl

override HEADS : u32 = 8u; // 1, 2, 4 or 8
// p.head_dim where that is a power of two, so that compilers know it; else 0
override DIM : u32 = 0u;
override WG : u32 = 256u;  // threads, 256 or 512; a tile has an eighth as many keys
override SPREAD : u32 = 2304u; // 8 WG + 256; of one head 4 WG + 256 are enough

const LANES : u32 = 8u;  // threads that share a key's dot product
const ROUND : u32 = 32u; // splits are multiples of this many keys
const LOWEST : f32 = -3.0e38;

// scores of all heads by lanes; at the end 2 heads x 4 columns x thread
var<workgroup> spread : array<f32, SPREAD>;

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

// vec4s of a head
fn head4() -> u32 {
    if (DIM != 0u) {
        return DIM / 4u;
    }
    return p.head_dim / 4u;
}

// i / n for i below 2^20, in a few instructions: the half is more than what rounding loses.
fn quotient(i : u32, n : u32) -> u32 {
    return u32((f32(i) + 0.5) / f32(n));
}

fn part_of(index : u32) -> Part {
    let group = quotient(p.n_head, p.n_kv_head);
    let chunks = (group + HEADS - 1u) / HEADS;
    let of_split = quotient(index, p.n_split);
    let split = index - of_split * p.n_split;
    let of_chunk = quotient(of_split, chunks);
    let chunk = of_split - of_chunk * chunks;
    let row = quotient(of_chunk, p.n_kv_head);
    let kv_head = of_chunk - row * p.n_kv_head;
    let last = step.pos + p.pos_offset + row;
    let first = first_seen(last, p.window);
    let n_seen = last + 1u - first;
    let span = (n_seen + p.n_split * ROUND - 1u) / (p.n_split * ROUND) * ROUND;
    return Part(row < p.rows, kv_head, min(HEADS, group - chunk * HEADS),
                row * p.n_head + kv_head * group + chunk * HEADS, split,
                first + min(split * span, n_seen), first + min(split * span + span, n_seen));
}

// The slot of a position. Most positions are below the number of slots and need no division.
fn slot_of(position : u32) -> u32 {
    if (position < p.n_slots) {
        return position;
    }
    return position % p.n_slots;
}

// Where in the cache the vectors of slot0 + j are, once around the ring at most.
fn vectors_at(slot0 : u32, j : u32, kv_head : u32) -> u32 {
    var slot = slot0 + j;
    if (slot >= p.n_slots) {
        slot -= p.n_slots;
    }
    return (slot * p.n_kv_head + kv_head) * head4();
}

struct Scores {
    a : vec4<f32>, // heads 0 .. 3
    b : vec4<f32>, // heads 4 .. 7
}

fn key_at(i : u32) -> vec4<f32> {
    return kv_four(k_cache[i >> KV_F16], i);
}

fn value_at(i : u32) -> vec4<f32> {
    return kv_four(v_cache[i >> KV_F16], i);
}

// The products of four columns of a key with all heads. Heads past the last one repeat it:
// computed, never stored.
fn add_dots(s : ptr<function, Scores>, k : vec4<f32>, part : Part, d : u32) {
    let end = part.n_head - 1u;
    (*s).a.x += dot(k, query(part, 0u, d));
    if (HEADS > 1u) {
        (*s).a.y += dot(k, query(part, min(1u, end), d));
    }
    if (HEADS > 2u) {
        (*s).a.z += dot(k, query(part, min(2u, end), d));
        (*s).a.w += dot(k, query(part, min(3u, end), d));
    }
    if (HEADS > 4u) {
        (*s).b.x += dot(k, query(part, min(4u, end), d));
        (*s).b.y += dot(k, query(part, min(5u, end), d));
        (*s).b.z += dot(k, query(part, min(6u, end), d));
        (*s).b.w += dot(k, query(part, min(7u, end), d));
    }
}

// Products with four keys' columns, then eight: so many loads are on their way at a time.
fn add_four_dots(s : ptr<function, Scores>, src : u32, part : Part, d : u32) {
    let k0 = key_at(src + d);
    let k1 = key_at(src + d + LANES);
    let k2 = key_at(src + d + 2u * LANES);
    let k3 = key_at(src + d + 3u * LANES);
    add_dots(s, k0, part, d);
    add_dots(s, k1, part, d + LANES);
    add_dots(s, k2, part, d + 2u * LANES);
    add_dots(s, k3, part, d + 3u * LANES);
}

fn add_eight_dots(s : ptr<function, Scores>, src : u32, part : Part, d : u32) {
    let k0 = key_at(src + d);
    let k1 = key_at(src + d + LANES);
    let k2 = key_at(src + d + 2u * LANES);
    let k3 = key_at(src + d + 3u * LANES);
    let k4 = key_at(src + d + 4u * LANES);
    let k5 = key_at(src + d + 5u * LANES);
    let k6 = key_at(src + d + 6u * LANES);
    let k7 = key_at(src + d + 7u * LANES);
    add_dots(s, k0, part, d);
    add_dots(s, k1, part, d + LANES);
    add_dots(s, k2, part, d + 2u * LANES);
    add_dots(s, k3, part, d + 3u * LANES);
    add_dots(s, k4, part, d + 4u * LANES);
    add_dots(s, k5, part, d + 5u * LANES);
    add_dots(s, k6, part, d + 6u * LANES);
    add_dots(s, k7, part, d + 7u * LANES);
}

// This lane's part of the dot products of the key at `src` with all heads.
fn dots_of(src : u32, part : Part, lane : u32) -> Scores {
    var s = Scores();
    if (HEADS == 1u && DIM >= 32u * LANES) {
        for (var i = 0u; i < DIM / (32u * LANES); i++) {
            add_eight_dots(&s, src, part, lane + 8u * LANES * i);
        }
        return s;
    }
    if (DIM >= 16u * LANES) {
        for (var i = 0u; i < DIM / (16u * LANES); i++) {
            add_four_dots(&s, src, part, lane + 4u * LANES * i);
        }
        return s;
    }
    for (var i = 0u; i < MOST_TURNS; i++) {
        let d = lane + LANES * i;
        if (d >= head4()) {
            break;
        }
        add_dots(&s, key_at(src + d), part, d);
    }
    return s;
}

// A thread's sums of values, four columns of each head.
struct Outputs {
    o0 : vec4<f32>,
    o1 : vec4<f32>,
    o2 : vec4<f32>,
    o3 : vec4<f32>,
    o4 : vec4<f32>,
    o5 : vec4<f32>,
    o6 : vec4<f32>,
    o7 : vec4<f32>,
}

fn shrink_all(o : ptr<function, Outputs>) {
    (*o).o0 *= shrink[0];
    if (HEADS > 1u) {
        (*o).o1 *= shrink[1];
    }
    if (HEADS > 2u) {
        (*o).o2 *= shrink[2];
        (*o).o3 *= shrink[3];
    }
    if (HEADS > 4u) {
        (*o).o4 *= shrink[4];
        (*o).o5 *= shrink[5];
        (*o).o6 *= shrink[6];
        (*o).o7 *= shrink[7];
    }
}

// Four columns v of key j, for all heads.
fn add_value(o : ptr<function, Outputs>, v : vec4<f32>, j : u32) {
    (*o).o0 += prob[j * 8u] * v;
    if (HEADS > 1u) {
        (*o).o1 += prob[j * 8u + 1u] * v;
    }
    if (HEADS > 2u) {
        (*o).o2 += prob[j * 8u + 2u] * v;
        (*o).o3 += prob[j * 8u + 3u] * v;
    }
    if (HEADS > 4u) {
        (*o).o4 += prob[j * 8u + 4u] * v;
        (*o).o5 += prob[j * 8u + 5u] * v;
        (*o).o6 += prob[j * 8u + 6u] * v;
        (*o).o7 += prob[j * 8u + 7u] * v;
    }
}

// Four columns of the value of key j; past the last one, whose probability is 0, of that.
fn tile_value(part : Part, slot0 : u32, n_keys : u32, j : u32, col : u32) -> vec4<f32> {
    return value_at(vectors_at(slot0, min(j, n_keys - 1u), part.kv_head) + col);
}

fn add_four_values(o : ptr<function, Outputs>, part : Part, slot0 : u32, n_keys : u32, j : u32,
                   step : u32, col : u32) {
    let v0 = tile_value(part, slot0, n_keys, j, col);
    let v1 = tile_value(part, slot0, n_keys, j + step, col);
    let v2 = tile_value(part, slot0, n_keys, j + 2u * step, col);
    let v3 = tile_value(part, slot0, n_keys, j + 3u * step, col);
    add_value(o, v0, j);
    add_value(o, v1, j + step);
    add_value(o, v2, j + 2u * step);
    add_value(o, v3, j + 3u * step);
}

fn add_eight_values(o : ptr<function, Outputs>, part : Part, slot0 : u32, n_keys : u32, j : u32,
                    step : u32, col : u32) {
    let v0 = tile_value(part, slot0, n_keys, j, col);
    let v1 = tile_value(part, slot0, n_keys, j + step, col);
    let v2 = tile_value(part, slot0, n_keys, j + 2u * step, col);
    let v3 = tile_value(part, slot0, n_keys, j + 3u * step, col);
    let v4 = tile_value(part, slot0, n_keys, j + 4u * step, col);
    let v5 = tile_value(part, slot0, n_keys, j + 5u * step, col);
    let v6 = tile_value(part, slot0, n_keys, j + 6u * step, col);
    let v7 = tile_value(part, slot0, n_keys, j + 7u * step, col);
    add_value(o, v0, j);
    add_value(o, v1, j + step);
    add_value(o, v2, j + 2u * step);
    add_value(o, v3, j + 3u * step);
    add_value(o, v4, j + 4u * step);
    add_value(o, v5, j + 5u * step);
    add_value(o, v6, j + 6u * step);
    add_value(o, v7, j + 7u * step);
}

// This thread's part of a tile's values: every (WG / n4)-th key.
fn add_values(o : ptr<function, Outputs>, part : Part, slot0 : u32, n_keys : u32, slice : u32,
              col : u32) {
    let step = WG / head4();
    let wide = HEADS == 1u && DIM >= 256u;
    if (DIM >= 128u) { // four steps are a tile, or a part of one
        let more = select(4u, 8u, wide) * step;
        for (var i = 0u; i < MOST_TURNS; i++) {
            let j = slice + i * more;
            if (j >= n_keys) {
                break;
            }
            if (wide) {
                add_eight_values(o, part, slot0, n_keys, j, step, col);
            } else {
                add_four_values(o, part, slot0, n_keys, j, step, col);
            }
        }
        return;
    }
    for (var i = 0u; i < MOST_TURNS; i++) {
        let j = slice + i * step;
        if (j >= n_keys) {
            break;
        }
        add_value(o, value_at(vectors_at(slot0, j, part.kv_head) + col), j);
    }
}

// The values of two heads, spread over slices of keys: thread slice * n4 + col has a sum of `col`.
fn store_two(part : Part, head : u32, a : vec4<f32>, b : vec4<f32>, lid : u32) {
    let n4 = head4();
    spread[lid] = a.x;
    spread[WG + lid] = a.y;
    spread[2u * WG + lid] = a.z;
    spread[3u * WG + lid] = a.w;
    if (HEADS > 1u) {
        spread[4u * WG + lid] = b.x;
        spread[5u * WG + lid] = b.y;
        spread[6u * WG + lid] = b.z;
        spread[7u * WG + lid] = b.w;
    }
    workgroupBarrier();
    // Threads below n4 finish the first of the two, the next n4 the second.
    let which = lid / n4;
    let col = lid % n4;
    if (which < 2u && head + which < part.n_head) {
        var sum = vec4<f32>();
        for (var j = 0u; j < WG; j++) {
            if (j >= WG / n4) {
                break;
            }
            let src = which * 4u * WG + j * n4 + col;
            sum += vec4<f32>(spread[src], spread[src + WG], spread[src + 2u * WG],
                             spread[src + 3u * WG]);
        }
        put_four(part, head + which, col, sum);
    }
    workgroupBarrier();
}

var<workgroup> score : array<vec4<f32>, 128>; // head x key
var<workgroup> prob : array<f32, WG>;         // key x 8 heads
// head: the factor of older tiles under the new maximum
var<workgroup> shrink : array<f32, 8>;

// Where the lanes' scores of a head begin in `spread`: each lane has a row of them, a tile's keys
// and a gap, so that banks differ.
fn scores_at(head : u32, lane : u32) -> u32 {
    return (head * LANES + lane) * (WG / LANES + 4u);
}

// Attention over the part's split of the history. Of a tile 8 lanes share a key for the dots, then
// (head, key) threads for the softmax, then threads over (slice of keys, 4 columns) for the values.
fn attend_split(part : Part, lid : u32) {
    let n4 = head4();
    let key = lid / LANES; // in the first phase
    let lane = lid % LANES;
    let n_tile = WG / LANES; // keys of a tile
    let my_head = lid / n_tile; // in the second
    let my_key = lid % n_tile;
    let slices = WG / n4; // in the third
    let slice = lid / n4;
    let col = lid % n4;

    var factor = 1.0;
    var top = LOWEST;
    var total = 0.0;
    var o = Outputs();

    for (var tile = 0u; tile < MOST_TURNS; tile++) {
        let base = part.lo + tile * n_tile;
        if (base >= part.hi) {
            break;
        }
        let n_keys = min(n_tile, part.hi - base);
        let slot0 = slot_of(base);

        var d = Scores();
        if (key < n_keys) {
            d = dots_of(vectors_at(slot0, key, part.kv_head), part, lane);
        }
        spread[scores_at(0u, lane) + key] = d.a.x;
        if (HEADS > 1u) {
            spread[scores_at(1u, lane) + key] = d.a.y;
        }
        if (HEADS > 2u) {
            spread[scores_at(2u, lane) + key] = d.a.z;
            spread[scores_at(3u, lane) + key] = d.a.w;
        }
        if (HEADS > 4u) {
            spread[scores_at(4u, lane) + key] = d.b.x;
            spread[scores_at(5u, lane) + key] = d.b.y;
            spread[scores_at(6u, lane) + key] = d.b.z;
            spread[scores_at(7u, lane) + key] = d.b.w;
        }
        workgroupBarrier();

        if (tile == 0u && my_head < HEADS) {
            factor = query_scale(my_head);
        }
        var s = LOWEST;
        if (my_head < HEADS && my_key < n_keys) {
            s = 0.0;
            for (var j = 0u; j < LANES; j++) {
                s += spread[scores_at(my_head, j) + my_key];
            }
            s *= factor;
        }
        score[lid >> 2u][lid & 3u] = s;
        workgroupBarrier();

        if (my_head < HEADS) {
            var most = score[my_head * (n_tile / 4u)];
            for (var j = 1u; j < WG / (4u * LANES); j++) {
                most = max(most, score[my_head * (n_tile / 4u) + j]);
            }
            let new_top = max(top, max(max(most.x, most.y), max(most.z, most.w)));
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

        shrink_all(&o);
        if (slice < slices) {
            add_values(&o, part, slot0, n_keys, slice, col);
        }
    }

    // The sum of a head's exponentials is spread over its threads.
    score[lid >> 2u][lid & 3u] = total;
    workgroupBarrier();
    if (my_head < part.n_head && my_key == 0u) {
        var sum = score[lid >> 2u];
        for (var j = 1u; j < WG / (4u * LANES); j++) {
            sum += score[(lid >> 2u) + j];
        }
        put_end(part, my_head, top, (sum.x + sum.y) + (sum.z + sum.w));
    }
    if (part.lo == part.hi) {
        return;
    }
    store_two(part, 0u, o.o0, o.o1, lid);
    if (HEADS > 2u) {
        store_two(part, 2u, o.o2, o.o3, lid);
    }
    if (HEADS > 4u) {
        store_two(part, 4u, o.o4, o.o5, lid);
        store_two(part, 6u, o.o6, o.o7, lid);
    }
}

// ---- where a split's result goes ----

//!if split in partial partial_z
// split4() vec4s each. Head `head` of the part: where its split's result begins.
fn partial_at(part : Part, head : u32) -> u32 {
    return ((part.row_q + head) * p.n_split + part.split) * split4();
}

fn put_end(part : Part, head : u32, top : f32, total : f32) {
    partial[partial_at(part, head) + head4()] = vec4<f32>(top, total, 0.0, 0.0);
}
//!end

//!if split == partial
fn split4() -> u32 {
    return head4() + 1u;
}

fn put_four(part : Part, head : u32, i : u32, o : vec4<f32>) {
    partial[partial_at(part, head) + i] = o;
}

fn before_share(part : Part, lid : u32) {
}

fn after_share(part : Part, lid : u32) {
}
//!end
