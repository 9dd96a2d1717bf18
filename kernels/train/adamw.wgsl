// adamw - m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, x -= lr (m fix1 / (sqrt(v fix2) + eps) +
//   decay x), where g is multiplied first; nothing where clip found no number     (training)
//
//   control  read    of clip                grid   ceil(n / 64) workgroups
//   g        read    n f32                  bytes  4 reads + 3 writes an element
//   m        update  n f32                  needs  nothing
//   v        update  n f32
//   x        update  n f32
//
// Reference: adamw() in src/ops/ops_cpu_bwd.c. Tolerance 1e-12 nmse: a root, sums of two.

//!include lib/base.wgsl

struct Params {
    n : u32,
    beta1 : f32,
    beta2 : f32,
    eps : f32,
    decay : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind control read array<f32>
//!bind g read array<f32>
//!bind m update array<f32>
//!bind v update array<f32>
//!bind x update array<f32>

const WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let i = flat_group(wid, num) * WG + lid;
    let scale = control[7];
    if (i >= p.n || scale < 0.0) {
        return;
    }
    let lr = control[0];
    let grad = g[i] * scale;
    let first = p.beta1 * m[i] + (1.0 - p.beta1) * grad;
    let second = p.beta2 * v[i] + (1.0 - p.beta2) * grad * grad;
    m[i] = first;
    v[i] = second;
    x[i] -= lr * (first * control[1] / (sqrt(second * control[2]) + p.eps) + p.decay * x[i]);
}
