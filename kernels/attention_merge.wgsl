// attention_merge - y = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s, top the largest top_s
//
//   partial  read   rows x n_head x n_split x      grid   rows * n_head workgroups
//                   (head_dim + 4) f32             bytes  partial once, y once
//   y        write  rows x n_head x head_dim f32   needs  attention_split's parts, n_split <= 128,
//   s        write  y, settled; LORA: behind it,          head_dim % 4 == 0 and <= 1024; settles 0: no s;
//                   from word z_at on, A y of each               else head_dim % 16 == 0; LORA: settles, rows 1;
//                   head's columns: n_head x rank f32            else a is any buffer, unread
//   a        read   rank x n_head x head_dim f32
//
// Reference: attention() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.
//!include lib/grid.wgsl
//!include lib/settle.wgsl
//!include lib/put_run.wgsl
struct Params {
    n_vec : u32, // rows * n_head
    n_head : u32,
    head_dim : u32,
    n_split : u32,
    settles : u32, // s is wanted
    rank : u32,    // of the adapters of the product after it, see lib/lora.wgsl
    z_at : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> partial : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> s : array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> a : array<vec4<f32>>;

override LORA : u32 = 0u; // 1: the product after it has adapters

const WG : u32 = 256u;
const SHARES : u32 = 128u;

var<workgroup> tops : array<f32, SHARES>;
var<workgroup> totals : array<f32, SHARES>;
var<workgroup> sums : array<vec4<f32>, WG>;
var<workgroup> parts : array<f32, WG>; // with LORA

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
        let heads = p.n_head * n4; // vec4s of a row
        put_run(vec / p.n_head * heads, 4u * heads, (vec % p.n_head * n4 + i) / 4u, v);
    }
    if (LORA == 1u) {
        put_z(vec, n4, lid);
    }
}

// Sixteen threads a row of A; `sums` has the head.
fn put_z(vec : u32, n4 : u32, lid : u32) {
    let lane = lid % 16u;
    for (var first = 0u; first < p.rank; first += WG / 16u) {
        let k = first + lid / 16u;
        let at = (min(k, p.rank - 1u) * p.n_vec + vec) * n4;
        var part = 0.0;
        for (var i = lane; i < n4; i += 16u) {
            part += dot(a[at + i], sums[i]);
        }
        parts[lid] = part;
        workgroupBarrier();
        if (lane == 0u && k < p.rank) {
            var z = 0.0;
            for (var i = 0u; i < 16u; i++) {
                z += parts[lid + i];
            }
            let to = p.z_at + vec * p.rank + k;
            s[to >> 2u][to & 3u] = bitcast<u32>(z);
        }
        workgroupBarrier(); // before the next rows
    }
}
