// attention_merge - y = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s, top the largest top_s
//
//   partial  read   rows x n_head x n_split x      grid   rows * n_head workgroups
//                   (head_dim + 4) f32             bytes  partial once, y once
//   y        write  rows x n_head x head_dim f32   needs  attention_split's parts, head_dim % 4 == 0
//
// Reference: attention() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.
//!include lib/grid.wgsl
struct Params {
    n_vec : u32, // rows * n_head
    head_dim : u32,
    n_split : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> partial : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y : array<vec4<f32>>;

const WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let vec = flat_group(wid, num);
    if (vec >= p.n_vec) {
        return;
    }
    let n4 = p.head_dim / 4u;
    let at = vec * p.n_split * (n4 + 1u);
    var top = -3.0e38;
    for (var s = 0u; s < p.n_split; s++) {
        top = max(top, partial[at + s * (n4 + 1u) + n4].x);
    }
    for (var d = lid; d < n4; d += WG) {
        var sum = vec4<f32>();
        var total = 0.0;
        for (var s = 0u; s < p.n_split; s++) {
            let src = at + s * (n4 + 1u);
            let share = partial[src + n4];
            if (share.y > 0.0) {
                let e = exp(share.x - top);
                sum += e * partial[src + d];
                total += e * share.y;
            }
        }
        y[vec * n4 + d] = sum / total;
    }
}
