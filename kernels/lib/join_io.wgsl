// join_io - parameters and buffers of join and join_runs but for s.
struct Params {
    rows : u32,
    cols : u32,
    has_branch : u32,
    has_scale : u32,
    has_next : u32,
    puts : u32,    // y is wanted
    settles : u32, // join_runs: s is wanted
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind branch read array<vec4<f32>>
//!bind post read array<vec4<f32>>
//!bind scale read array<f32>
//!bind next_w read array<vec4<f32>>
//!bind to update array<vec4<f32>>
//!bind y update array<vec4<f32>>

fn post_of(i : u32) -> vec4<f32> {
    return post[i];
}

fn factor() -> f32 {
    if (p.has_scale != 0u) {
        return scale[0];
    }
    return 1.0;
}
