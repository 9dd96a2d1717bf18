// route - the experts of a row by their scores. Every expert counts those better than itself, four
// at a time: its rank, without any order of threads. Needs WG, ROUTE_FOURS (experts at most, in
// fours), p with n_expert and n_used, score_at(i) of all rows, sum_two(v, id): sums of two numbers
// of a workgroup, and the buffers ids and weights.
//
// WGSL lets a device take it for granted that no number is infinite or NaN. So they are told by the
// bits of their keys, and no arithmetic is trusted with them.
//!include lib/key.wgsl
var<workgroup> keys : array<vec4<u32>, ROUTE_FOURS>;
var<workgroup> ranks : array<u32, 4u * ROUTE_FOURS>; // an expert's own thread writes and reads it
var<workgroup> top_key : u32;
var<workgroup> last_key : u32; // of the worst expert

const MINUS_INFINITY : u32 = 0x007fffffu; // as keys; NaN is below it
const INFINITY : u32 = 0xff800000u;

// Of expert e of a row; past the last one less than any other's.
fn key_at(row : u32, e : u32) -> u32 {
    if (e < p.n_expert) {
        return max(key_of(score_at(row * p.n_expert + e)), 1u);
    }
    return 0u;
}

fn own_key(e : u32) -> u32 {
    return keys[e >> 2u][e & 3u];
}

// The whole workgroup takes part.
fn put_keys(row : u32, id : u32) {
    for (var i = id; i < (p.n_expert + 3u) / 4u; i += WG) {
        let e = 4u * i;
        keys[i] =
            vec4<u32>(key_at(row, e), key_at(row, e + 1u), key_at(row, e + 2u),
                      key_at(row, e + 3u));
    }
    workgroupBarrier();
}

fn counted(which : vec4<bool>) -> vec4<u32> {
    return select(vec4<u32>(), vec4<u32>(1u), which);
}

// How many are better than e; of equals the lower index is.
fn rank_of(e : u32) -> u32 {
    let key = own_key(e);
    let own = e >> 2u;
    var above = vec4<u32>();
    for (var j = 0u; j < ROUTE_FOURS; j++) {
        if (j >= (p.n_expert + 3u) / 4u) {
            break;
        }
        above += counted(keys[j] > vec4<u32>(select(key, key - 1u, j < own)));
    }
    let before = vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(e & 3u);
    above += counted((keys[own] == vec4<u32>(key)) & before);
    return (above.x + above.y) + (above.z + above.w);
}

// What e has of the softmax, before it is divided by the sum.
fn share_of(e : u32, top : f32) -> f32 {
    let key = own_key(e);
    return select(0.0, exp(value_of(key) - top), key > MINUS_INFINITY);
}

// Does the row have a softmax? Not with NaN among the scores, nor where the best one is infinite.
fn has_softmax() -> bool {
    return last_key >= MINUS_INFINITY && top_key > MINUS_INFINITY && top_key < INFINITY;
}

// NaN: the constant alone would be no shader.
fn no_number() -> f32 {
    return bitcast<f32>(0x7fc00000u | p.n_expert);
}

// The routing of a row, by a whole workgroup.
fn route(row : u32, id : u32) {
    put_keys(row, id);
    for (var e = id; e < p.n_expert; e += WG) {
        ranks[e] = rank_of(e);
        if (ranks[e] == 0u) {
            top_key = own_key(e);
        }
        if (ranks[e] == p.n_expert - 1u) {
            last_key = own_key(e);
        }
    }
    workgroupBarrier();
    let top = value_of(top_key);
    var shares = vec2<f32>(); // of all, and of those used
    for (var e = id; e < p.n_expert; e += WG) {
        let share = share_of(e, top);
        shares += vec2<f32>(share, select(0.0, share, ranks[e] < p.n_used));
    }
    shares = sum_two(shares, id);
    // The floor is the smallest normal half, as in the reference.
    let whole = shares.x * max(shares.y / shares.x, 6.103515625e-5);
    for (var e = id; e < p.n_expert; e += WG) {
        if (ranks[e] < p.n_used) {
            ids[row * p.n_used + ranks[e]] = e;
            weights[row * p.n_used + ranks[e]] =
                select(no_number(), share_of(e, top) / whole, has_softmax());
        }
    }
}
