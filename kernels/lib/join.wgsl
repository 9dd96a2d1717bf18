// join - the kernel of that name without its sum, which a tier chooses.
//!include lib/grid.wgsl
//!include lib/joining.wgsl

struct Params {
    rows : u32,
    cols : u32,
    has_branch : u32,
    has_scale : u32,
    has_next : u32,
    puts : u32, // y is wanted
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

// What the next block reads of vec4 i, which is v of the stream.
fn leads_on(j : Joining, v : vec4<f32>, i : u32) -> vec4<f32> {
    if (p.has_next != 0u) {
        return v * j.inverse * next_w[i];
    }
    return v;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let groups = num.x * num.y / p.rows;
    let group = flat_group(wid, num);
    let row = group / groups;
    if (row >= p.rows) {
        return;
    }
    let n = p.cols / 4u;
    let j = begin_joining(row * n, id);
    for (var i = group % groups * WG + id; i < n; i += groups * WG) {
        let v = joined(j, i);
        to[j.at + i] = v;
        if (p.puts != 0u) {
            y[j.at + i] = leads_on(j, v, i);
        }
    }
}
