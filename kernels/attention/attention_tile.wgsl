// attention_tile - y = sum_j softmax(q.k_j) v_j over the positions j that the row sees, 32 queries
//   at a time
//
//   q        read   rows x n_head x head_dim f32      grid   ceil(rows * group / 32) * n_kv_head
//   k_cache  read   n_slots x n_kv_head x head_dim    bytes  the history once a tile, q once per 64
//   v_cache  read   as k_cache                               keys, y once
//   k        read   rows x n_kv_head x head_dim f32   needs  head_dim % 4 == 0 and <= 256 COLS,
//   v        read   as k                                     group = n_head / n_kv_head; k and v
//   y        write  rows x n_head x head_dim f32             with keys == prefix alone
//
// The group query heads of a kv head and neighbouring rows share a tile: query m of a kv head is
// head m % group of row m / group. Row t is at pos + pos_offset + t. Keys come 64 at a time.
// keys == prefix: the rows are a canvas. Each of them sees the last window - 1 of the pos +
// pos_offset positions that the cache has, then all rows of k and v; scores are times `scale`.
// Scores: 32 columns of queries and keys lie in workgroup memory column by column; two row groups
// of 128 threads take every other half of them, a thread 4 queries x 4 keys. Softmax, online: 8
// threads a query. Values: a thread has 8 queries x COLS x 4 columns.
// Reference: attention() in src/ops/ops_cpu.c; of a canvas attend_masked() in
// src/ops/ops_cpu_optional.c. Tolerance 1e-9 nmse: f32 here.

//!axis keys cache prefix
//!include lib/base.wgsl
//!include lib/step.wgsl

struct Params {
    rows : u32,
    n_head : u32,
    n_kv_head : u32,
    head_dim : u32,
    n_slots : u32,
    window : u32, // 0: all
    pos_offset : u32,
    scale : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind q read array<vec4<f32>>
//!bind k_cache read array<vec4<u32>>
//!bind v_cache read array<vec4<u32>>
//!if keys == prefix
//!bind k read array<vec4<f32>>
//!bind v read array<vec4<f32>>
//!end
//!bind y update array<vec4<f32>>
//!include lib/kv.wgsl

override COLS : u32 = 2u; // vectors of 4 columns a thread: 1 or 2, ceil(head_dim / 256)

const WG : u32 = 256u;
const QUERIES : u32 = 32u;
const KEYS : u32 = 64u;
const STEP4 : u32 = 8u; // vectors of 4 columns staged at once
const LOWEST : f32 = -3.0e38;

var<workgroup> queries : array<vec4<f32>, 256>; // column x 8 vectors of 4 queries
// column x 16 vectors of 4 keys; then scores, key x 8 vectors of queries
var<workgroup> keys : array<vec4<f32>, 512>;
var<workgroup> part : array<f32, 256>;          // a number a thread
var<workgroup> factor : array<f32, 32>;         // a number a query

struct Query {
    at : u32, // of its vector in q and y
    pos : u32,
}

// Query m of the kv head; past the end, the last one.
fn query(m : u32, kv_head : u32, group : u32) -> Query {
    let i = min(m, p.rows * group - 1u);
    return Query((i / group * p.n_head + kv_head * group + i % group) * (p.head_dim / 4u),
                 step.pos + p.pos_offset + i / group);
}

// The keys that a tile has at a time, n from `base` on, of which `base + i` is in row slot0 + i of
// the cache, once around the ring at most, or (own) of k and v.
struct Keys {
    n : u32,
    slot0 : u32,
    own : bool,
}

//!if keys == cache
// A tile's first row sees farthest back, its last row farthest forward.
fn first_key(m0 : u32, kv_head : u32, group : u32) -> u32 {
    return first_seen(query(m0, kv_head, group).pos, p.window);
}

fn end_key(m0 : u32, kv_head : u32, group : u32) -> u32 {
    return query(m0 + QUERIES - 1u, kv_head, group).pos + 1u;
}

fn keys_from(base : u32, end : u32) -> Keys {
    return Keys(min(KEYS, end - base), base % p.n_slots, false);
}

// Does the query at position `pos` see key i of these?
fn seen(base : u32, i : u32, n : u32, pos : u32) -> bool {
    let key = base + i;
    return key <= pos && (p.window == 0u || pos - key < p.window);
}

fn key_four(at : u32, own : bool) -> vec4<f32> {
    return kv_four(k_cache[at >> KV_F16], at);
}

fn value_four(at : u32, own : bool) -> vec4<f32> {
    return kv_four(v_cache[at >> KV_F16], at);
}
//!else
fn first_key(m0 : u32, kv_head : u32, group : u32) -> u32 {
    return first_seen(step.pos + p.pos_offset, p.window);
}

fn end_key(m0 : u32, kv_head : u32, group : u32) -> u32 {
    return step.pos + p.pos_offset + p.rows;
}

// Of the cache or of the rows, never of both.
fn keys_from(base : u32, end : u32) -> Keys {
    let n_cached = end - p.rows;
    if (base < n_cached) {
        return Keys(min(KEYS, n_cached - base), base % p.n_slots, false);
    }
    return Keys(min(KEYS, end - base), base - n_cached, true);
}

fn seen(base : u32, i : u32, n : u32, pos : u32) -> bool {
    return i < n;
}

fn key_four(at : u32, own : bool) -> vec4<f32> {
    if (own) {
        return k[at];
    }
    return kv_four(k_cache[at >> KV_F16], at);
}

fn value_four(at : u32, own : bool) -> vec4<f32> {
    if (own) {
        return v[at];
    }
    return kv_four(v_cache[at >> KV_F16], at);
}
//!end

// Where key i of these begins; past the last one, that one.
fn key_at(some : Keys, i : u32) -> u32 {
    var slot = some.slot0 + min(i, some.n - 1u);
    if (!some.own && slot >= p.n_slots) {
        slot -= p.n_slots;
    }
    return slot * p.n_kv_head * (p.head_dim / 4u);
}

// Four columns, number `col`, of what begins at `at`; zeros past the last.
fn query_part(at : u32, col : u32) -> vec4<f32> {
    if (col < p.head_dim / 4u) {
//!if keys == cache
        return q[at + col];
//!else
        return p.scale * q[at + col];
//!end
    }
    return vec4<f32>();
}

fn key_part(at : u32, col : u32, own : bool) -> vec4<f32> {
    if (col < p.head_dim / 4u) {
        return key_four(at + col, own);
    }
    return vec4<f32>();
}

fn put_query(i : u32, c : u32, v : vec4<f32>) {
    let at = 32u * c + i / 4u; // column 4c
    queries[at][i % 4u] = v.x;
    queries[at + 8u][i % 4u] = v.y;
    queries[at + 16u][i % 4u] = v.z;
    queries[at + 24u][i % 4u] = v.w;
}

fn put_key(i : u32, c : u32, v : vec4<f32>) {
    let at = 64u * c + i / 4u;
    keys[at][i % 4u] = v.x;
    keys[at + 16u][i % 4u] = v.y;
    keys[at + 32u][i % 4u] = v.z;
    keys[at + 48u][i % 4u] = v.w;
}

// Scores of 4 queries and 4 keys, a column a key.
fn plus_outer(sum : mat4x4<f32>, u : vec4<f32>, k : vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(sum[0] + u * k.x, sum[1] + u * k.y, sum[2] + u * k.z, sum[3] + u * k.w);
}

struct Sums {
    low : mat4x4<f32>, // queries 8g .. 8g + 3, a column each
    high : mat4x4<f32>,
}

fn scaled(s : Sums, a : vec4<f32>, b : vec4<f32>) -> Sums {
    return Sums(mat4x4<f32>(s.low[0] * a.x, s.low[1] * a.y, s.low[2] * a.z, s.low[3] * a.w),
                mat4x4<f32>(s.high[0] * b.x, s.high[1] * b.y, s.high[2] * b.z, s.high[3] * b.w));
}

fn plus_values(s : Sums, a : vec4<f32>, b : vec4<f32>, v : vec4<f32>) -> Sums {
    return Sums(plus_outer(s.low, v, a), plus_outer(s.high, v, b));
}

fn factors(g : u32) -> vec4<f32> {
    return vec4<f32>(factor[4u * g], factor[4u * g + 1u], factor[4u * g + 2u], factor[4u * g + 3u]);
}

// Where a thread's results go.
struct Tile {
    m : u32, // its first query
    n : u32, // queries that there are
    kv_head : u32,
    group : u32,
    c : u32,
}

fn put_one(t : Tile, i : u32, a : vec4<f32>, b : vec4<f32>) {
    let at = query(t.m + i, t.kv_head, t.group).at + t.c;
    if (t.m + i < t.n && t.c < p.head_dim / 4u) {
        y[at] = a;
    }
    if (COLS > 1u && t.m + i < t.n && t.c + 64u < p.head_dim / 4u) {
        y[at + 64u] = b;
    }
}

fn put_four(t : Tile, i : u32, a : mat4x4<f32>, b : mat4x4<f32>) {
    put_one(t, i, a[0], b[0]);
    put_one(t, i + 1u, a[1], b[1]);
    put_one(t, i + 2u, a[2], b[2]);
    put_one(t, i + 3u, a[3], b[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let group = p.n_head / p.n_kv_head;
    let n_query = p.rows * group;
    let index = flat_group(wid, num);
    let kv_head = index % p.n_kv_head;
    let m0 = index / p.n_kv_head * QUERIES;
    if (step.rows == 0u || m0 >= n_query) {
        return;
    }
    let n4 = p.head_dim / 4u;
    let head = kv_head * n4;
    // as a loader: columns of a query and of two keys
    let staged = query(m0 + lid % 32u, kv_head, group).at;
    let c_query = lid / 32u;
    let c_key = lid / 64u;
    let row_group = lid / 128u; // as a worker on scores
    let q4 = lid % 8u;
    let k4 = lid % 128u / 8u;
    let mine = query(m0 + lid % 32u, kv_head, group).pos; // on the softmax: eight keys of one query
    let g = lid / 64u; // on the values
    let c = lid % 64u;

    let end = end_key(m0, kv_head, group);

    var top = LOWEST;
    var total = 0.0; // this thread's keys only
    var a = Sums();  // columns 4c ..
    var b = Sums();  // columns 4 (c + 64) ..
    for (var base = first_key(m0, kv_head, group); base < end;) {
        let some = keys_from(base, end);
        let key = head + key_at(some, lid % 64u);

        var s = mat4x4<f32>();
        var qv = query_part(staged, c_query);
        var kv0 = key_part(key, c_key, some.own);
        var kv1 = key_part(key, c_key + 4u, some.own);
        for (var col = 0u; col < n4; col += STEP4) {
            put_query(lid % 32u, c_query, qv);
            put_key(lid % 64u, c_key, kv0);
            put_key(lid % 64u, c_key + 4u, kv1);
            workgroupBarrier();
            qv = query_part(staged, col + STEP4 + c_query);
            kv0 = key_part(key, col + STEP4 + c_key, some.own);
            kv1 = key_part(key, col + STEP4 + c_key + 4u, some.own);
            for (var j = 0u; j < 16u; j++) {
                let at = 16u * row_group + j;
                s = plus_outer(s, queries[8u * at + q4], keys[16u * at + k4]);
            }
            workgroupBarrier();
        }
        let here = 32u * k4 + q4;
        if (row_group == 1u) {
            keys[here] = s[0];
            keys[here + 8u] = s[1];
            keys[here + 16u] = s[2];
            keys[here + 24u] = s[3];
        }
        workgroupBarrier();
        if (row_group == 0u) {
            keys[here] += s[0];
            keys[here + 8u] += s[1];
            keys[here + 16u] += s[2];
            keys[here + 24u] += s[3];
        }
        workgroupBarrier();

        let first = lid / 32u * 8u; // of its keys
        let score = 8u * first + lid % 32u / 4u;
        var highest = LOWEST;
        for (var j = 0u; j < 8u; j++) {
            if (seen(base, first + j, some.n, mine)) {
                highest = max(highest, keys[score + 8u * j][lid % 4u]);
            }
        }
        part[lid] = highest;
        workgroupBarrier();
        var new_top = top;
        for (var j = 0u; j < 8u; j++) {
            new_top = max(new_top, part[32u * j + lid % 32u]);
        }
        let older = exp(top - new_top);
        top = new_top;
        total *= older;
        for (var j = 0u; j < 8u; j++) {
            var e = 0.0;
            if (seen(base, first + j, some.n, mine)) {
                e = exp(keys[score + 8u * j][lid % 4u] - new_top);
            }
            keys[score + 8u * j][lid % 4u] = e;
            total += e;
        }
        if (lid < 32u) {
            factor[lid] = older;
        }
        workgroupBarrier();

        a = scaled(a, factors(2u * g), factors(2u * g + 1u));
        if (COLS > 1u) {
            b = scaled(b, factors(2u * g), factors(2u * g + 1u));
        }
        if (c < n4) {
            for (var j = 0u; j < some.n; j++) {
                let at = head + key_at(some, j) + c;
                let e0 = keys[8u * j + 2u * g];
                let e1 = keys[8u * j + 2u * g + 1u];
                a = plus_values(a, e0, e1, value_four(at, some.own));
                if (COLS > 1u && c + 64u < n4) {
                    b = plus_values(b, e0, e1, value_four(at + 64u, some.own));
                }
            }
        }
        base += some.n;
        workgroupBarrier(); // before the next tile's keys
    }

    // The sum of a query's exponentials is spread over its eight threads.
    part[lid] = total;
    workgroupBarrier();
    if (lid < 32u) {
        var sum = 0.0;
        for (var j = 0u; j < 8u; j++) {
            sum += part[32u * j + lid];
        }
        factor[lid] = 1.0 / sum;
    }
    workgroupBarrier();
    a = scaled(a, factors(2u * g), factors(2u * g + 1u));
    b = scaled(b, factors(2u * g), factors(2u * g + 1u));
    let m = m0 + 8u * g;
    let at = Tile(m, n_query, kv_head, group, c);
    put_four(at, 0u, a.low, b.low);
    put_four(at, 4u, a.high, b.high);
}
