// sample_part - the k best of each of the grid's equal shares of a row of logits
//
//   logits  read   first + n f32                grid   as many workgroups as parts, in x only
//   parts   write  grid x k x (key, item) u32   bytes  n f32, read once a round (2 to 7)
//                                               needs  0 < k <= 1024, n < 2^24; item:
//                                                      lib/select.wgsl
//
// The k of a share are in no order; (0, 0) fills up when a share has fewer.
// Reference: take_best() in src/text/sampler.c, with sample. Tolerance 0: comparisons only.

//!include lib/key.wgsl
//!include lib/select.wgsl

struct Params {
    n : u32,     // logits
    first : u32, // index of the first one: a row of several
    k : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind logits read array<f32>
//!bind parts update array<vec2<u32>>

const WG : u32 = 256u;

var<private> begin : u32; // of this share
var<private> end : u32;
var<workgroup> n_out : atomic<u32>;

fn n_items() -> u32 {
    return end - begin;
}

fn item(i : u32) -> vec2<u32> {
    return vec2<u32>(key_of(logits[p.first + begin + i]), NO_ID - (begin + i));
}

fn item_weight(key : u32, kind : u32) -> u32 {
    return 1u;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let share = (p.n + num.x - 1u) / num.x;
    begin = min(p.n, wid.x * share);
    end = min(p.n, begin + share);
    let bar = select_bar(ALL_ITEMS, vec2<u32>(p.k, 0u), 0u, false, lid);
    for (var i = lid; i < n_items(); i += WG) {
        let it = item(i);
        if (at_least(it, bar)) {
            parts[wid.x * p.k + atomicAdd(&n_out, 1u)] = it;
        }
    }
    workgroupBarrier();
    for (var i = atomicLoad(&n_out) + lid; i < p.k; i += WG) {
        parts[wid.x * p.k + i] = vec2<u32>();
    }
}
