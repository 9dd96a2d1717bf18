// rms_norm_bwd - with n = x / rms and g = dy * w, each row: dx += (g - n mean(g n)) / rms
//
//   dy  read    rows x cols f32        grid   one workgroup a row
//   x   read    rows x cols f32        bytes  5 reads + 1 write an element
//   w   read    cols f32               needs  cols % 4 == 0; has_w 0: w is any buffer, unread
//   dx  update  rows x cols f32
//
// Reference: norm_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis tier plain
//!include lib/base.wgsl
//!include lib/sum.wgsl

struct Params {
    rows : u32,
    cols : u32,
    has_w : u32,
    fresh : u32, // 1: dx is set, not added to
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind dy read array<vec4<f32>>
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<f32>>
//!bind dx update array<vec4<f32>>

override WG : u32 = 256u;

fn weighted(i : u32, at : u32) -> vec4<f32> {
    if (p.has_w != 0u) {
        return dy[at + i] * w[i];
    }
    return dy[at + i];
}

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
    var products = 0.0;
    for (var i = lid; i < n; i += WG) {
        let v = x[at + i];
        squares += dot(v, v);
        products += dot(v, weighted(i, at));
    }
    let inverse = inverseSqrt(workgroup_sum(squares, lid) / f32(p.cols) + p.eps);
    workgroupBarrier(); // before the second sum
    let mean = workgroup_sum(products, lid) * inverse / f32(p.cols);
    for (var i = lid; i < n; i += WG) {
        let d = (weighted(i, at) - x[at + i] * (inverse * mean)) * inverse;
        if (p.fresh == 0u) {
            dx[at + i] += d;
        } else {
            dx[at + i] = d;
        }
    }
}
