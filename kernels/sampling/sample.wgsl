// sample - a token drawn from the k best of sample_part's parts: top-p and min-p on softmax(z),
//   then one draw from softmax(z / temperature) of what is left; the step moves on
//
//   parts    read    n_parts x (key, item) u32    grid   one workgroup
//   history  update  tokens by position, u32      bytes  the parts, once a round (2 to 7)
//   ids      update  ids[0], u32                  needs  0 < k <= 1024, temperature > 0,
//   state    update  the step, 16 u32                    step.rows as the step had them
//
// Reference: sampler_draw() in src/text/sampler.c. Tolerance: the same token but where a sum in f32
// and one in f64 fall on different sides of a limit or the draw.

//!axis tier plain
//!include lib/key.wgsl
//!include lib/select.wgsl
//!include lib/sum.wgsl

struct Params {
    n_parts : u32, // items: sample_part's grid * its k
    k : u32,
    advance : u32, // 1: the next step starts after this one
    top_p : f32,
    min_p : f32,
    temperature : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind parts read array<vec2<u32>>
//!bind history update array<u32>
//!bind ids update array<u32>
//!bind state update array<u32>

const WG : u32 = 256u;

var<workgroup> best : array<vec2<u32>, 1024>; // the items, then the items in order
var<workgroup> n_best : atomic<u32>;
var<workgroup> n_kept : atomic<u32>;
var<workgroup> n_before : atomic<u32>;

fn n_items() -> u32 {
    return p.n_parts;
}

fn item(i : u32) -> vec2<u32> {
    return parts[i];
}

fn item_weight(key : u32, kind : u32) -> u32 {
    return 1u;
}

// How many of the n items are better than each of four: their places in order.
fn ranks(four : array<vec2<u32>, 4>, n : u32) -> vec4<u32> {
    var r = vec4<u32>();
    for (var i = 0u; i < n; i++) {
        let other = best[i];
        r += select(vec4<u32>(), vec4<u32>(1u),
                    vec4<bool>(!at_least(four[0], other), !at_least(four[1], other),
                               !at_least(four[2], other), !at_least(four[3], other)));
    }
    return r;
}

// e^((z - top) / t) of the four ordered items 4 lid .., 0 for those past n.
fn four_weights(n : u32, t : f32, lid : u32) -> vec4<f32> {
    let top = value_of(best[0].x);
    let z = vec4<f32>(value_of(best[4u * lid].x), value_of(best[4u * lid + 1u].x),
                      value_of(best[4u * lid + 2u].x), value_of(best[4u * lid + 3u].x));
    let i = vec4<u32>(4u * lid) + vec4<u32>(0u, 1u, 2u, 3u);
    return select(vec4<f32>(), exp((z - top) / t), i < vec4<u32>(n));
}

fn count(v : vec4<bool>) -> u32 {
    let ones = select(vec4<u32>(), vec4<u32>(1u), v);
    return ones.x + ones.y + ones.z + ones.w;
}

// The sums before each of four numbers.
fn before(v : vec4<f32>, start : f32) -> vec4<f32> {
    let b = start + v.x;
    let c = b + v.y;
    return vec4<f32>(start, b, c, c + v.z);
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lid : u32) {
    let bar = select_bar(ALL_ITEMS, vec2<u32>(p.k, 0u), 0u, false, lid);
    for (var i = lid; i < p.n_parts; i += WG) {
        if (at_least(parts[i], bar)) {
            best[atomicAdd(&n_best, 1u)] = parts[i];
        }
    }
    workgroupBarrier();
    let n = atomicLoad(&n_best);

    // In order, best first.
    var four = array<vec2<u32>, 4>(best[4u * lid], best[4u * lid + 1u], best[4u * lid + 2u],
                                   best[4u * lid + 3u]);
    let rank = ranks(four, n);
    workgroupBarrier();
    for (var c = 0u; c < 4u; c++) {
        if (4u * lid + c < n) {
            best[rank[c]] = four[c];
        }
    }
    workgroupBarrier();

    // top-p: an item stays while those before it hold less than top_p. min-p: while it is likely
    // enough.
    var w = four_weights(n, 1.0, lid);
    var sums = workgroup_scan(w.x + w.y + w.z + w.w, lid);
    let place = vec4<u32>(4u * lid) + vec4<u32>(0u, 1u, 2u, 3u);
    let likely = (before(w, sums.x) < vec4<f32>(p.top_p * sums.y)) | vec4<bool>(p.top_p >= 1.0);
    let keep =
        (place < vec4<u32>(n)) & ((likely & (w >= vec4<f32>(p.min_p))) | (place == vec4<u32>(0u)));
    atomicAdd(&n_kept, count(keep));
    workgroupBarrier();
    let kept = atomicLoad(&n_kept);

    // The draw: the first item with u * total < sum up to and with it.
    w = four_weights(kept, p.temperature, lid);
    sums = workgroup_scan(w.x + w.y + w.z + w.w, lid);
    let seed = vec2<u32>(state[STEP_SEED], state[STEP_SEED + 1u]);
    let u = f32(rng_bits(seed, state[STEP_DRAW])) / 16777216.0;
    let passed = (before(w, sums.x) + w) <= vec4<f32>(u * sums.y);
    atomicAdd(&n_before, count(passed & (place < vec4<u32>(kept))));
    workgroupBarrier();
    if (lid == 0u) {
        let at = min(atomicLoad(&n_before), max(kept, 1u) - 1u);
        leave_token(select(NO_TOKEN, NO_ID - best[at].y, kept > 0u), p.advance);
    }
}
