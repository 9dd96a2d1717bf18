// linear.subgroup - y[t] = W x[t], or y[t] += scale * W x[t]     (decode: one or a few rows t)
//
//   x  read    n_tok x cols f32     grid   a row t after the other; in each, one workgroup per 4 WG / LANES rows of W
//   w  read    rows x cols          bytes  W once a row t; x from the cache
//   y  update  n_tok x rows f32     needs  LANES a power of two, LANES <= WG <= 256; x finite up to a multiple of 8
//
// As the plain tier, but lanes add up inside of their subgroup first, whatever its size: what is left for
// workgroup memory are LANES / size sums, and one barrier.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 sums here, f64 there.

enable subgroups;

//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/grid.wgsl
//!include lib/linear_io.wgsl
//!include lib/dot_$SHAPE.wgsl

override WG : u32 = 64u;
override LANES : u32 = 32u;

var<workgroup> part : array<vec4<f32>, 256>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32, @builtin(subgroup_size) subgroup : u32) {
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

    let size = min(subgroup, LANES);
    for (var half = size / 2u; half > 0u; half /= 2u) {
        sum += subgroupShuffleXor(sum, half);
    }
    if (id % size == 0u) {
        part[id / size] = sum;
    }
    workgroupBarrier();
    for (var r = lane; r < 4u; r += LANES) {
        if (first + r < p.rows) {
            var total = 0.0;
            for (var k = 0u; k < LANES / size; k++) {
                total += part[(id - lane) / size + k][r];
            }
            put(tok, first + r, total);
        }
    }
}
