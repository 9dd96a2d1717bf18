// weigh_columns - y[r] = x[r] * u * v, column by column
//
//   x        read   rows x 4 cols4 f32             grid   a thread per vec4
//   vectors  read   u and v at their places,       bytes  x, y
//                   in vec4s; NOWHERE: ones        needs  rows cols4 = n
//   y        write  from vec4 `to` on
//
// The rows of adapters as lib/ahead.wgsl wants them.
// Reference: case_layer_ahead() in tests/ops_cases.h, of what comes of them. Tolerance 1e-10 nmse: a product or two.
//!include lib/grid.wgsl
struct Params {
    n : u32, // vec4s
    cols4 : u32,
    u_at : u32,
    v_at : u32,
    to : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y : array<vec4<f32>>;

const WG : u32 = 64u;
//!include lib/weighing.wgsl

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = flat_group(wid, num) * WG + id;
    if (i < p.n) {
        let col = i % p.cols4;
        y[p.to + i] = x[i] * weight(p.u_at, col) * weight(p.v_at, col);
    }
}
