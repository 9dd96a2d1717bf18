// add_norm - x[t] = x[t] + branch[t] / sqrt(mean(branch[t]^2) + eps) * w
//
//   branch  read    rows x cols f32   grid   one workgroup a row
//   w       read    cols f32          bytes  3 reads + 1 write an element
//   x       update  rows x cols f32   needs  cols % 4 == 0
//
// Reference: rms_norm() and add() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sum here, f64
// there.

//!axis tier plain subgroup
//!include lib/base.wgsl
//!include lib/sum.wgsl

struct Params {
    rows : u32,
    cols : u32,
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind branch read array<vec4<f32>>
//!bind w read array<vec4<f32>>
//!bind x update array<vec4<f32>>

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
    for (var i = lid; i < n; i += WG) {
        x[at + i] += branch[at + i] * inverse * w[i];
    }
}
