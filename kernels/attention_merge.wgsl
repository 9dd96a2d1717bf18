// attention_merge - y = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s, top the largest top_s
//
//   partial  read   rows x n_head x n_split x      grid   rows * n_head workgroups
//                   (head_dim + 4) f32             bytes  partial once, y once
//   y        write  rows x n_head x head_dim f32   needs  attention_split's parts, n_split <= 128,
//                                                        head_dim % 4 == 0 and <= 1024
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

const WG : u32 = 256u;
const SHARES : u32 = 128u;

var<workgroup> tops : array<f32, SHARES>;
var<workgroup> totals : array<f32, SHARES>;
var<workgroup> sums : array<vec4<f32>, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let vec = flat_group(wid, num);
    if (vec >= p.n_vec) {
        return;
    }
    let n4 = p.head_dim / 4u;
    let at = vec * p.n_split * (n4 + 1u);
    if (lid < p.n_split) {
        let share = partial[at + lid * (n4 + 1u) + n4];
        tops[lid] = select(-3.0e38, share.x, share.y > 0.0);
        totals[lid] = share.y;
    }
    workgroupBarrier();
    var top = tops[0];
    for (var s = 1u; s < p.n_split; s++) {
        top = max(top, tops[s]);
    }
    // Threads over (slice of shares, 4 columns). A share without positions has no o: what lies there is not used.
    let slices = WG / n4;
    let slice = lid / n4;
    let col = lid % n4;
    var sum = vec4<f32>();
    for (var s = slice; s < p.n_split && slice < slices; s += slices) {
        let o = partial[at + s * (n4 + 1u) + col];
        sum += select(vec4<f32>(), exp(tops[s] - top) * o, vec4<bool>(totals[s] > 0.0));
    }
    sums[lid] = sum;
    workgroupBarrier();
    if (lid < n4) {
        var total = 0.0;
        for (var s = 0u; s < p.n_split; s++) {
            total += exp(tops[s] - top) * totals[s];
        }
        for (var i = 1u; i < slices; i++) {
            sum += sums[i * n4 + lid];
        }
        y[vec * n4 + lid] = sum / total;
    }
}
