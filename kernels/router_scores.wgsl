// router_scores - z = W (x / sqrt(mean(x^2) + eps) / sqrt(cols) * scale)     (each row)
//
//   x       read   rows x cols f32          grid   rows * ceil(n_expert / (WG / LANES))
//   w       read   n_expert x cols f32      bytes  w once a row; x and scale once a workgroup
//   scale   read   cols f32                 needs  cols % 4 == 0
//   scores  write  rows x n_expert f32
//
// The norm is a factor of the whole row, so it is summed beside the dot product and applied at the end.
// Reference: the first half of router() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sum here.
//!include lib/grid.wgsl
struct Params {
    rows : u32,
    cols : u32,
    n_expert : u32,
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> scale : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> scores : array<f32>;

override WG : u32 = 256u;   // at most 256
override LANES : u32 = 32u; // threads an expert, a multiple of 4

var<workgroup> dots : array<f32, 256>;
var<workgroup> squares : array<f32, 256>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let experts = WG / LANES; // of a workgroup
    let blocks = (p.n_expert + experts - 1u) / experts;
    let index = flat_group(wid, num);
    let row = index / blocks;
    if (row >= p.rows) {
        return;
    }
    let n4 = p.cols / 4u;
    let expert0 = index % blocks * experts;
    let expert = min(expert0 + lid / LANES, p.n_expert - 1u);
    var d = 0.0;
    var s = 0.0;
    for (var i = lid % LANES; i < n4; i += LANES) {
        let v = x[row * n4 + i];
        s += dot(v, v);
        d += dot(w[expert * n4 + i], v * scale[i]);
    }
    dots[lid] = d;
    squares[lid] = s;
    workgroupBarrier();
    // A quarter of an expert's threads, then one, add up.
    let quarter = LANES / 4u;
    let part = lid % LANES;
    if (part < quarter) {
        d = (d + dots[lid + quarter]) + (dots[lid + 2u * quarter] + dots[lid + 3u * quarter]);
        s = (s + squares[lid + quarter]) + (squares[lid + 2u * quarter] + squares[lid + 3u * quarter]);
    }
    workgroupBarrier();
    dots[lid] = d;
    squares[lid] = s;
    workgroupBarrier();
    if (part == 0u && expert0 + lid / LANES < p.n_expert) {
        for (var i = 1u; i < quarter; i++) {
            d += dots[lid + i];
            s += squares[lid + i];
        }
        let cols = f32(p.cols);
        scores[row * p.n_expert + expert0 + lid / LANES] = d * inverseSqrt(s / cols + p.eps) * inverseSqrt(cols);
    }
}
