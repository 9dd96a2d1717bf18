// linear - y[t] = W x[t], or y[t] += scale * W x[t]     (decode: one or a few rows t)
//
//   x  read    n_tok x cols f32     grid   a row t after the other; in each, one workgroup per 4 WG / LANES rows of W
//   w  read    rows x cols          bytes  W once a row t; x from the cache
//   y  update  n_tok x rows f32     needs  LANES a power of two, LANES <= WG <= 256; x finite up to a multiple of 8
//
// LANES lanes share four rows of W: each takes every LANES-th unit of all four (so that an activation in
// a register is used four times), then the lanes' sums are added in workgroup memory.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 sums here, f64 there.

//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/grid.wgsl
//!include lib/linear_io.wgsl
//!include lib/dot_$SHAPE.wgsl

override WG : u32 = 64u;
override LANES : u32 = 32u;

var<workgroup> part : array<vec4<f32>, 256>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let per_tok = (p.rows * LANES + 4u * WG - 1u) / (4u * WG);
    let group = flat_group(wid, num);
    let tok = group / per_tok;
    if (tok >= p.n_tok) {
        return;
    }
    let first = 4u * ((group % per_tok) * (WG / LANES) + id / LANES);
    let lane = id % LANES;
    let units = (p.cols + UNIT - 1u) / UNIT;
    let at = min(vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(p.rows - 1u)) * units;

    var sum = vec4<f32>();
    for (var u = lane; u < units; u += LANES) {
        let v = acts(tok * (p.x_stride / 4u), u);
        sum += vec4<f32>(unit_dot(at.x + u, v), unit_dot(at.y + u, v), unit_dot(at.z + u, v),
                         unit_dot(at.w + u, v));
    }

    part[id] = sum;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        if (lane < half) {
            part[id] += part[id + half];
        }
        workgroupBarrier();
    }
    for (var r = lane; r < 4u; r += LANES) {
        if (first + r < p.rows) {
            put(tok, first + r, part[id - lane][r]);
        }
    }
}
