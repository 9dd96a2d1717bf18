// argmax_part - the best (key, id) of each of the grid's equal shares of a row of logits
//
//   logits  read   first + n f32          grid   as many workgroups as parts, in x only
//   parts   write  grid x (key, id) u32   bytes  n f32
//                                         needs  key: an integer in the logits' order
//                                                (lib/key.wgsl)
//
// Reference: best_of() in src/text/sampler.c, with argmax. Tolerance 0: comparisons only.

//!include lib/key.wgsl

struct Params {
    n : u32,     // logits
    first : u32, // index of the first one: a row of several
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind logits read array<f32>
//!bind parts update array<vec2<u32>>

override WG : u32 = 256u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let share = (p.n + num.x - 1u) / num.x;
    let end = min(p.n, wid.x * share + share);
    var mine = vec2<u32>();
    for (var i = wid.x * share + lid; i < end; i += WG) {
        let key = key_of(logits[p.first + i]);
        if (key > mine.x) {
            mine = vec2<u32>(key, i);
        }
    }
    let b = workgroup_best(mine, lid);
    if (lid == 0u) {
        parts[wid.x] = b;
    }
}
