// experts_dweights - dw[slot] = act[slot] . dact[slot] / weight[slot], where dact has the weight in
//   it     (training)
//
//   act      read   n_slots x n_ff f32      grid   one workgroup a slot
//   dact     read   n_slots x n_ff f32      bytes  2 reads an element
//   weights  read   n_slots f32             needs  n_ff % 4 == 0
//   dw       write  n_slots f32
//
// Reference: cpu_experts_bwd() in src/ops/ops_cpu_bwd_experts.c. Tolerance 1e-10 nmse: f32 sums
// here, f64 there.

//!axis tier plain
//!include lib/base.wgsl
//!include lib/sum.wgsl

struct Params {
    n_slots : u32,
    n_ff : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind act read array<vec4<f32>>
//!bind dact read array<vec4<f32>>
//!bind weights read array<f32>
//!bind dw update array<f32>

override WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let slot = flat_group(wid, num);
    if (slot >= p.n_slots) {
        return;
    }
    let n = p.n_ff / 4u;
    var sum = 0.0;
    for (var i = lid; i < n; i += WG) {
        sum += dot(act[slot * n + i], dact[slot * n + i]);
    }
    sum = workgroup_sum(sum, lid);
    if (lid == 0u) {
        let weight = weights[slot];
        dw[slot] = select(0.0, sum / weight, weight > 0.0);
    }
}
