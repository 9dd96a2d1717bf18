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
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> post : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> scale : array<f32>;
@group(0) @binding(5) var<storage, read> next_w : array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> y : array<vec4<f32>>;

fn post_of(i : u32) -> vec4<f32> {
    return post[i];
}

fn factor() -> f32 {
    if (p.has_scale != 0u) {
        return scale[0];
    }
    return 1.0;
}
