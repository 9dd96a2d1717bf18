// join - the kernel of that name without its sum, which a tier chooses.
//!include lib/grid.wgsl
//!include lib/joining.wgsl
//!include lib/settle.wgsl

struct Params {
    rows : u32,
    cols : u32,
    has_branch : u32,
    has_scale : u32,
    has_next : u32,
    puts : u32,    // y is wanted
    settles : u32, // s is wanted
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
@group(0) @binding(8) var<storage, read_write> s : array<vec4<u32>>;

fn factor() -> f32 {
    if (p.has_scale != 0u) {
        return scale[0];
    }
    return 1.0;
}

// Writes vec4 i of the row; what the next block reads of it.
fn go_on(j : Joining, i : u32) -> vec4<f32> {
    var v = joined(j, i);
    to[j.at + i] = v;
    if (p.has_next != 0u) {
        v *= j.inverse * next_w[i];
    }
    if (p.puts != 0u) {
        y[j.at + i] = v;
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
    let first = group % groups * WG + id;
    if (p.settles == 0u) {
        for (var i = first; i < n; i += groups * WG) {
            go_on(j, i);
        }
        return;
    }
    for (var i = 4u * first; i < n; i += 4u * groups * WG) {
        let v = settle(go_on(j, i), go_on(j, i + 1u), go_on(j, i + 2u), go_on(j, i + 3u));
        s[j.at + i] = v.a;
        s[j.at + i + 1u] = v.b;
        s[j.at + i + 2u] = v.c;
        s[j.at + i + 3u] = v.d;
    }
}
