// ple_mix - each slice of `width` numbers: ple = (rms_norm(proj * proj_scale) * w + ple) / sqrt(2)
//
//   proj  read    rows x n_slice x width f32     grid   one workgroup a (row, slice)
//   w     read    width f32                      bytes  3 reads + 1 write an element
//   ple   update  rows x n_slice x width f32     needs  width % 4 == 0
//
// Reference: ple_mix() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sum here, f64 there.

//!axis tier plain
//!include lib/grid.wgsl
//!include lib/sum.wgsl
struct Params {
    rows : u32,
    n_slice : u32,
    width : u32,
    proj_scale : f32,
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind proj read array<vec4<f32>>
//!bind w read array<vec4<f32>>
//!bind ple update array<vec4<f32>>

override WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let slice = flat_group(wid, num);
    if (slice >= p.rows * p.n_slice) {
        return;
    }
    let n = p.width / 4u;
    let at = slice * n;
    var squares = 0.0;
    for (var i = lid; i < n; i += WG) {
        let v = proj[at + i] * p.proj_scale;
        squares += dot(v, v);
    }
    let inverse = inverseSqrt(workgroup_sum(squares, lid) / f32(p.width) + p.eps);
    for (var i = lid; i < n; i += WG) {
        let v = proj[at + i] * (p.proj_scale * inverse) * w[i];
        ple[at + i] = (v + ple[at + i]) * 0.70710678118654752;
    }
}
