// attention_merge - y = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s, top the largest top_s
//
//   partial  read   rows x n_head x n_split x      grid   rows * n_head workgroups
//                   (head_dim + 4) f32             bytes  partial once, y once
//   y        write  rows x n_head x head_dim f32   needs  attention_split's parts, n_split <= 128,
//   s        write  y, settled                            head_dim % 4 == 0 and <= 1024; settles 0: no s;
//                                                        else head_dim % 16 == 0
//
// Reference: attention() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.
//!include lib/grid.wgsl
//!include lib/settle.wgsl
struct Params {
    n_vec : u32, // rows * n_head
    head_dim : u32,
    n_split : u32,
    settles : u32, // s is wanted
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> partial : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> s : array<vec4<u32>>;

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
    for (var i = 1u; i < p.n_split; i++) {
        top = max(top, tops[i]);
    }
    // Threads over (slice of shares, 4 columns). A share without positions has no o: what lies there is not used.
    let slices = WG / n4;
    let slice = lid / n4;
    let col = lid % n4;
    var sum = vec4<f32>();
    for (var i = slice; i < p.n_split && slice < slices; i += slices) {
        let o = partial[at + i * (n4 + 1u) + col];
        sum += select(vec4<f32>(), exp(tops[i] - top) * o, vec4<bool>(totals[i] > 0.0));
    }
    sums[lid] = sum;
    workgroupBarrier();
    if (lid < n4) {
        var total = 0.0;
        for (var i = 0u; i < p.n_split; i++) {
            total += exp(tops[i] - top) * totals[i];
        }
        for (var i = 1u; i < slices; i++) {
            sum += sums[i * n4 + lid];
        }
        sum /= total;
        y[vec * n4 + lid] = sum;
    }
    if (p.settles == 0u) {
        return;
    }
    workgroupBarrier(); // before what was summed is written over
    sums[lid] = sum;
    workgroupBarrier();
    if (lid < n4 / 4u) {
        let i = 4u * lid;
        let v = settle(sums[i], sums[i + 1u], sums[i + 2u], sums[i + 3u]);
        s[vec * n4 + i] = v.a;
        s[vec * n4 + i + 1u] = v.b;
        s[vec * n4 + i + 2u] = v.c;
        s[vec * n4 + i + 3u] = v.d;
    }
}
