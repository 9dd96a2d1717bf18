// sum_partials - y[at ...] = y + the sum of n_part vectors (fresh: without y);
//   with GELU y[at ...] = gelu(that) * by[row][by_col ...], in rows of cols
//
//   x   read    n_part x n f32     grid   one thread per four numbers
//   by  read    rows of f32        bytes  n_part reads, 1 or 2 reads and 1 write an element
//   y   update  at + n f32         needs  n, at, cols % 4 == 0; GELU 0: by is any buffer, unread
//
// Reference: the sums in linear_bwd() in src/ops/ops_cpu_bwd.c and in linear() in
// src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums.

//!include lib/base.wgsl

struct Params {
    n : u32,
    n_part : u32,
    at : u32, // where they go in y
    fresh : u32, // 1: y holds nothing yet
    cols : u32,
    by_stride : u32, // f32 from row to row of `by`
    by_col : u32,    // its column that meets column 0 of y
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind by read array<f32>
//!bind y update array<vec4<f32>>

const WG : u32 = 64u;
override GELU : u32 = 0u;

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
    if (GELU == 1u) {
        let n = 4u * i;
        let at = n / p.cols * p.by_stride + p.by_col + n % p.cols;
        sum = gelu_tanh(sum) * vec4<f32>(by[at], by[at + 1u], by[at + 2u], by[at + 3u]);
    }
    y[p.at / 4u + i] = sum;
}
