// argmax - the best of argmax_part's parts becomes the token, and the step moves on
//
//   parts    read    n_parts x (key, id) u32     grid   one workgroup
//   history  update  tokens by position, u32     bytes  the parts
//   ids      update  ids[0], u32                 needs  step.rows as the step had them
//   state    update  the step, 16 u32
//
// Reference: best_of() in src/text/sampler.c: ties to the lower id. Tolerance 0: comparisons only.

//!include lib/key.wgsl

struct Params {
    n_parts : u32,
    advance : u32, // 1: the next step starts after this one
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind parts read array<vec2<u32>>
//!bind history update array<u32>
//!bind ids update array<u32>
//!bind state update array<u32>

override WG : u32 = 256u;

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lid : u32) {
    var mine = vec2<u32>();
    for (var i = lid; i < p.n_parts; i += WG) {
        if (better(parts[i], mine)) {
            mine = parts[i];
        }
    }
    let b = workgroup_best(mine, lid);
    if (lid == 0u) {
        leave_token(select(NO_TOKEN, b.y, b.x >= FIRST_KEY), p.advance);
    }
}
