// columns_to_rows - y[t][i] = x[i][t] * u[i] * v[i]
//
//   x        read   rows x cols f32                grid   a thread per four numbers of a column
//   vectors  read   u and v at their places,       bytes  x, y
//                   in vec4s; NOWHERE: ones        needs  rows % 4 == 0
//   y        write  cols x rows f32, from vec4 `to` on
//
// The columns of a matrix as what another one multiplies: a product of both; and back. See lib/ahead.wgsl.
// Reference: case_layer_led() in tests/ops_cases.h, of what comes of them. Tolerance 1e-10 nmse: two products.
//!include lib/grid.wgsl
struct Params {
    rows : u32,
    cols : u32,
    u_at : u32,
    v_at : u32,
    to : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<f32>;
@group(0) @binding(2) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y : array<vec4<f32>>;

const WG : u32 = 64u;
//!include lib/weighing.wgsl

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let fours = p.rows / 4u;
    let at = flat_group(wid, num) * WG + id;
    let t = at % p.cols;
    let i = at / p.cols;
    if (i < fours) {
        let first = 4u * i * p.cols + t;
        let column = vec4<f32>(x[first], x[first + p.cols], x[first + 2u * p.cols], x[first + 3u * p.cols]);
        y[p.to + t * fours + i] = column * weight(p.u_at, i) * weight(p.v_at, i);
    }
}
