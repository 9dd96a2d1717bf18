// sum_parts - y[at ...] = y + the sum of n_part vectors (fresh: without y)
//
//   x  read    n_part x n f32      grid   one thread per four numbers
//   y  update  at + n f32          bytes  n_part reads, 1 read and 1 write an element
//                                  needs  n, at % 4 == 0
//
// Reference: the sum in linear_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-10 nmse: f32 sums.
//!include lib/grid.wgsl
struct Params {
    n : u32,
    n_part : u32,
    at : u32, // where they go in y
    fresh : u32, // 1: y holds nothing yet
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y : array<vec4<f32>>;

const WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let i = flat_group(wid, num) * WG + lid;
    let n4 = p.n / 4u;
    if (i >= n4) {
        return;
    }
    var sum = vec4<f32>();
    for (var k = 0u; k < p.n_part; k++) {
        sum += x[k * n4 + i];
    }
    if (p.fresh == 0u) {
        sum += y[p.at / 4u + i];
    }
    y[p.at / 4u + i] = sum;
}
