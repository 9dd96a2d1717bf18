// router_scores - z = W (x / sqrt(mean(x^2) + eps) / sqrt(cols) * scale), y = x / sqrt(mean(x^2) +
//   eps) * norm     (each row)
//
//   x       read   rows x cols f32       grid   rows * ceil(n_expert / (WG / LANES))
//   w       read   n_expert x cols f32   bytes  w once a row; x and scale once a workgroup; norm
//   scale   read   cols f32                     and y once a row
//   norm    read   cols f32              needs  cols % 4 == 0; where p.makes_ready cols % 16 == 0,
//   scores  write  rows x n_expert f32          else s is any buffer, unwritten
//   y       write  rows x cols f32
//   s       write  y, ready
//
// The norm is a factor of the whole row, so it is summed beside the dot product and applied at the
// end. Every workgroup then has it, and writes a share of y, which the experts read.
// Reference: rms_norm(), linear() and times() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sum
// here.

//!axis acts f32 int8
//!include lib/base.wgsl
//!include lib/acts.wgsl

struct Params {
    rows : u32,
    cols : u32,
    n_expert : u32,
    makes_ready : u32, // s is wanted
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<f32>>
//!bind scale read array<vec4<f32>>
//!bind norm read array<vec4<f32>>
//!bind scores update array<f32>
//!bind y update array<vec4<f32>>
//!bind s update array<vec4<u32>>

override WG : u32 = 256u;   // at most 256
override LANES : u32 = 32u; // threads an expert, a multiple of 4

var<workgroup> dots : array<f32, 256>;
var<workgroup> squares : array<f32, 256>;

// Column four i of a row of n; past its end the last one again.
fn put(row : u32, n : u32, i : u32, inverse : f32) -> vec4<f32> {
    let k = min(i, n - 1u);
    let v = x[row * n + k] * inverse * norm[k];
    y[row * n + k] = v;
    return v;
}

// A run of sixteen columns a thread, as many workgroups as there are.
fn put_runs(row : u32, n : u32, first : u32, step : u32, inverse : f32) {
    for (var i = 4u * first; i < n; i += 4u * step) {
        let a = put(row, n, i, inverse);
        let b = put(row, n, i + 1u, inverse);
        let c = put(row, n, i + 2u, inverse);
        let d = put(row, n, i + 3u, inverse);
        if (p.makes_ready != 0u) {
            put_run(row * n, 4u * n, i / 4u, make_ready(a, b, c, d));
        }
    }
}

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
    let block = index % blocks;
    let expert0 = block * experts;
    let expert = min(expert0 + lid / LANES, p.n_expert - 1u);
    var d = 0.0;
    var square = 0.0;
    for (var i = lid % LANES; i < n4; i += LANES) {
        let v = x[row * n4 + i];
        square += dot(v, v);
        d += dot(w[expert * n4 + i], v * scale[i]);
    }
    dots[lid] = d;
    squares[lid] = square;
    workgroupBarrier();
    // A quarter of an expert's threads add up, and a quarter of those, until few are left.
    let part = lid % LANES;
    var left = LANES;
    for (; left > 8u; left /= 4u) {
        let quarter = left / 4u;
        if (part < quarter) {
            d = (d + dots[lid + quarter]) + (dots[lid + 2u * quarter] + dots[lid + 3u * quarter]);
            square =
                (square + squares[lid + quarter]) +
                (squares[lid + 2u * quarter] + squares[lid + 3u * quarter]);
        }
        workgroupBarrier();
        dots[lid] = d;
        squares[lid] = square;
        workgroupBarrier();
    }
    square = 0.0;
    for (var i = 0u; i < left; i++) {
        square += squares[lid - part + i];
    }
    let cols = f32(p.cols);
    let inverse = inverseSqrt(square / cols + p.eps);
    put_runs(row, n4, block + blocks * lid, blocks * WG, inverse);
    if (part == 0u && expert0 + lid / LANES < p.n_expert) {
        for (var i = 1u; i < left; i++) {
            d += dots[lid + i];
        }
        scores[row * p.n_expert + expert0 + lid / LANES] = d * inverse * inverseSqrt(cols);
    }
}
