// attention - y = sum_j softmax(q.k_j) v_j over the positions j that the row sees
//
//   q        read   rows x n_head x head_dim f32     grid   ceil(rows * group / 4) * n_kv_head
//   k_cache  read   n_slots x n_kv_head x head_dim   bytes  the history once a workgroup
//   v_cache  read   as k_cache                       needs  head_dim <= 128 WG, WG <= 64 (subgroup:
//   k        read   rows x n_kv_head x head_dim f32         its lanes), group = n_head / n_kv_head;
//   v        read   as k                                    k and v with keys == prefix alone
//   y        write  rows x n_head x head_dim f32
//
// For devices in software, where barriers are slow and neighbours' loads are vectors: few threads,
// side by side over the columns, four queries and four keys in registers. attention_split and
// attention_tile are for GPUs. Query m of a kv head is head m % group of row m / group; row t is at
// pos + pos_offset + t. In the subgroup tier the workgroup is one subgroup, which needs no barrier.
// keys == prefix: as attention_tile.
// Reference: attention() in src/ops/ops_cpu.c; of a canvas attend_masked() in
// src/ops/ops_cpu_optional.c. Tolerance 1e-9 nmse: f32 here.

//!axis tier plain subgroup
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
//!bind q read array<f32>
//!bind k_cache read array<u32>
//!bind v_cache read array<u32>
//!if keys == prefix
//!bind k read array<f32>
//!bind v read array<f32>
//!end
//!bind y update array<f32>

override WG : u32 = 4u;
override KV_F16 : u32 = 0u; // as in lib/kv.wgsl

const QUERIES : u32 = 4u;
const LOWEST : f32 = -3.0e38;

// Of four queries, for each of four keys.
struct Four {
    a : vec4<f32>,
    b : vec4<f32>,
    c : vec4<f32>,
    d : vec4<f32>,
}

fn number(word : u32, i : u32) -> f32 {
    if (KV_F16 == 0u) {
        return bitcast<f32>(word);
    }
    return unpack2x16float(word)[i & 1u];
}

// Where query m of the kv head begins in q and y; past the end, the last one.
fn query_at(m : u32, kv_head : u32, group : u32) -> u32 {
    let i = min(m, p.rows * group - 1u);
    return (i / group * p.n_head + kv_head * group + i % group) * p.head_dim;
}

// Where position `key` of the kv head begins in the cache; from `cached` on in k and v.
fn key_at(key : u32, cached : u32, kv_head : u32) -> u32 {
    if (key >= cached) {
        return ((key - cached) * p.n_kv_head + kv_head) * p.head_dim;
    }
    return (key % p.n_slots * p.n_kv_head + kv_head) * p.head_dim;
}

fn key_number(at : u32, i : u32, own : bool) -> f32 {
//!if keys == prefix
    if (own) {
        return k[at + i];
    }
//!end
    return number(k_cache[(at + i) >> KV_F16], i);
}

fn value_number(at : u32, i : u32, own : bool) -> f32 {
//!if keys == prefix
    if (own) {
        return v[at + i];
    }
//!end
    return number(v_cache[(at + i) >> KV_F16], i);
}

// The scores of one key, LOWEST for queries that do not see it.
fn visible(score : vec4<f32>, key : u32, first : vec4<u32>, last : vec4<u32>) -> vec4<f32> {
    return select(vec4<f32>(LOWEST), score, (vec4<u32>(key) >= first) & (vec4<u32>(key) <= last));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let group = p.n_head / p.n_kv_head;
    let index = flat_group(wid, num);
    let kv_head = index % p.n_kv_head;
    let m = index / p.n_kv_head * QUERIES;
    let n_query = p.rows * group;
    if (step.rows == 0u || m >= n_query) {
        return;
    }
    let at = vec4<u32>(query_at(m, kv_head, group), query_at(m + 1u, kv_head, group),
                       query_at(m + 2u, kv_head, group), query_at(m + 3u, kv_head, group));
    // The positions that each query sees. Those from `cached` on are the rows'.
    let now = step.pos + p.pos_offset;
//!if keys == cache
    let row = min(vec4<u32>(m, m + 1u, m + 2u, m + 3u), vec4<u32>(n_query - 1u)) / group;
    let last = now + row;
    let first = vec4<u32>(first_seen(last.x, p.window), first_seen(last.y, p.window),
                          first_seen(last.z, p.window), first_seen(last.w, p.window));
    let cached = last.w + 1u;
    let scale = 1.0;
//!else
    let last = vec4<u32>(now + p.rows - 1u);
    let first = vec4<u32>(first_seen(now, p.window));
    let cached = now;
    let scale = p.scale;
//!end

    var top = vec4<f32>(LOWEST);
    var total = vec4<f32>();
    var out : array<vec4<f32>, 128>; // by column of this thread
    for (var base = first.x; base <= last.w;) {
        // Four keys of the cache or of the rows, never of both.
        let own = base >= cached;
        let end = select(min(last.w, cached - 1u), last.w, own);
        let ka = key_at(base, cached, kv_head);
        let kb = key_at(min(base + 1u, end), cached, kv_head);
        let kc = key_at(min(base + 2u, end), cached, kv_head);
        let kd = key_at(min(base + 3u, end), cached, kv_head);
        var s = Four();
        for (var i = lid; i < p.head_dim; i += WG) {
            let u = vec4<f32>(q[at.x + i], q[at.y + i], q[at.z + i], q[at.w + i]);
            s.a += u * key_number(ka, i, own);
            s.b += u * key_number(kb, i, own);
            s.c += u * key_number(kc, i, own);
            s.d += u * key_number(kd, i, own);
        }
        s = sum_of_four(s, lid);
        let here = min(last, vec4<u32>(end));
        s.a = visible(scale * s.a, base, first, here);
        s.b = visible(scale * s.b, base + 1u, first, here);
        s.c = visible(scale * s.c, base + 2u, first, here);
        s.d = visible(scale * s.d, base + 3u, first, here);
        let new_top = max(max(max(s.a, s.b), max(s.c, s.d)), top);
        // A query that has seen nothing yet has top LOWEST, and e^0 must not count.
        let from_top = max(new_top, vec4<f32>(0.5 * LOWEST));
        let older = exp(top - new_top);
        let a = exp(s.a - from_top);
        let b = exp(s.b - from_top);
        let c = exp(s.c - from_top);
        let d = exp(s.d - from_top);
        top = new_top;
        total = total * older + a + b + c + d;
        var j = 0u;
        for (var i = lid; i < p.head_dim; i += WG) {
            out[j] = out[j] * older + a * value_number(ka, i, own) + b * value_number(kb, i, own)
                + c * value_number(kc, i, own) + d * value_number(kd, i, own);
            j += 1u;
        }
        base = min(base + 4u, end + 1u);
    }
    var j = 0u;
    for (var i = lid; i < p.head_dim; i += WG) {
        let o = out[j] / total;
        j += 1u;
        y[at.x + i] = o.x;
        if (m + 1u < n_query) {
            y[at.y + i] = o.y;
        }
        if (m + 2u < n_query) {
            y[at.z + i] = o.z;
        }
        if (m + 3u < n_query) {
            y[at.w + i] = o.w;
        }
    }
}

//!if tier == subgroup
enable subgroups;

fn sum_of_four(s : Four, lid : u32) -> Four {
    return Four(subgroupAdd(s.a), subgroupAdd(s.b), subgroupAdd(s.c), subgroupAdd(s.d));
}
//!else
var<workgroup> four : array<Four, 64>;

fn sum_of_four(s : Four, lid : u32) -> Four {
    four[lid] = s;
    workgroupBarrier();
    var sum = four[0];
    for (var i = 1u; i < WG; i++) {
        sum.a += four[i].a;
        sum.b += four[i].b;
        sum.c += four[i].c;
        sum.d += four[i].d;
    }
    workgroupBarrier(); // before the next ones
    return sum;
}
//!end
