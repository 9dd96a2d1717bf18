// add_norm_norm - the kernel of the same name without its sum, which a tier chooses.
//!include lib/grid.wgsl

struct Params {
    rows : u32,
    cols : u32,
    has_scale : u32,
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> scale : array<f32>;
@group(0) @binding(4) var<storage, read> next_w : array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> x : array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> y : array<vec4<f32>>;

override WG : u32 = 256u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let row = flat_group(wid, num);
    if (row >= p.rows) {
        return;
    }
    let n = p.cols / 4u;
    let at = row * n;
    var squares = 0.0;
    for (var i = lid; i < n; i += WG) {
        let v = branch[at + i];
        squares += dot(v, v);
    }
    let inverse = inverseSqrt(workgroup_sum(squares, lid) / f32(p.cols) + p.eps);
    var factor = 1.0;
    if (p.has_scale != 0u) {
        factor = scale[0];
    }
    squares = 0.0;
    for (var i = lid; i < n; i += WG) {
        let v = (x[at + i] + branch[at + i] * inverse * w[i]) * factor;
        x[at + i] = v;
        squares += dot(v, v);
    }
    workgroupBarrier(); // before the second sum
    let next_inverse = inverseSqrt(workgroup_sum(squares, lid) / f32(p.cols) + p.eps);
    for (var i = lid; i < n; i += WG) {
        y[at + i] = x[at + i] * next_inverse * next_w[i];
    }
}
