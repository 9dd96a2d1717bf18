// to_halves - h[t] = x[t] 2^-e, where 2^e is the power of two above max |x[t]| / 2^15: what
//   subgroup matrices multiply
//
//   x  read   rows x cols f32          grid   a workgroup per row
//   h  write  rows x 32-fold cols      bytes  2 reads + half a write per element
//             halves, zeros at the     needs  x_stride % 4 == 0; x finite up to 8-fold columns
//             end, and 16 bytes:
//             the row's 2^e as f32
//
// Halves end at 65504 and lose digits below 2^-14; a row's own power of two keeps all that matter,
// and is exact.
//
// Reference: linear() in src/ops/ops_cpu.c, which multiplies the row as it is. Tolerance 1e-7 nmse:
// halves.

//!include lib/base.wgsl

struct Params {
    rows : u32,
    cols : u32,
    x_stride : u32, // f32 from row to row
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind h update array<vec2<u32>>

override WG : u32 = 256u;

var<workgroup> largest : array<f32, 256>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let row = flat_group(wid, num);
    if (row >= p.rows) {
        return;
    }
    let n = (p.cols + 7u) / 8u * 2u; // vectors of 4
    let first = row * (p.x_stride / 4u);
    var top = 0.0;
    for (var i = id; i < n; i += WG) {
        let v = abs(x[first + i]);
        top = max(top, max(max(v.x, v.y), max(v.z, v.w)));
    }
    largest[id] = top;
    workgroupBarrier();
    for (var step = WG / 2u; step > 0u; step /= 2u) {
        if (id < step) {
            largest[id] = max(largest[id], largest[id + step]);
        }
        workgroupBarrier();
    }
    // The bits of a power of two are its exponent; between 2^-60 and 2^60, so that both directions
    // are numbers.
    let exponent = clamp(bitcast<u32>(largest[0]) >> 23u, 82u, 202u);
    let down = bitcast<f32>((268u - exponent) << 23u); // 2^(14 - e)
    let long = (p.cols + 31u) / 32u * 8u;
    let to = row * (long + 2u);
    for (var i = id; i < long; i += WG) {
        let v = select(vec4<f32>(), down * x[first + min(i, n - 1u)], i < n);
        h[to + i] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
    }
    if (id == 0u) {
        h[to + long] = vec2<u32>((exponent - 14u) << 23u, 0u);
    }
}
