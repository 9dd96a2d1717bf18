// merge_rows - y = W + sum over k of s_k B[:, k] A[k, :], as floats
//
//   w   read   rows x cols          grid   a thread per eight numbers
//   b   read   see lib/lora.wgsl    bytes  W and y once; A and B come from the cache
//   a   read   rank x cols f32      needs  cols % 8 == 0
//   y   write  rows x cols f32
//
// A matrix so small that it is faster as floats than with its adapters beside it.
// Reference: linear() in src/ops/ops_cpu.c, of what the product with y gives. Tolerance 1e-10 nmse: f32 here.

//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/grid.wgsl

struct Params {
    cols : u32,
    rows : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32,
    b_scales : u32,
}

const WG : u32 = 64u;

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> b : array<f32>;
@group(0) @binding(3) var<storage, read> a : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y : array<vec4<f32>>;

//!include lib/one_weight.wgsl
//!include lib/shape_$SHAPE.wgsl

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let eights = p.cols / 8u;
    let i = flat_group(wid, num) * WG + id;
    let row = i / eights;
    if (row >= p.rows) {
        return;
    }
    var sum = eight(i);
    for (var k = 0u; k < p.rank; k++) {
        let f = b[p.b_scales + k] * b[k * p.rows + row];
        let at = 2u * (k * eights + i % eights);
        sum.a += f * a[at];
        sum.b += f * a[at + 1u];
    }
    y[2u * i] = sum.a;
    y[2u * i + 1u] = sum.b;
}
