// canvas_rows - what a canvas's step leaves of each row: soft = scale / total * the n_split sums of
//   canvas_expect; entropy = log total - weighted / total; picks, the two tokens
//
//   known    read   of canvas_weigh               grid   a thread per vec4 of soft
//   sums     read   n_split x rows x cols f32     bytes  sums once, soft once
//   soft     write  rows x cols f32               needs  cols % 4 == 0
//   entropy  write  rows f32
//   picks    write  rows x 2 i32
//
// Reference: cpu_canvas_head() in src/ops/ops_cpu_canvas.c. Tolerance 1e-9 nmse: f32 sums.

//!include lib/base.wgsl
//!include lib/step.wgsl

struct Params {
    rows : u32,
    cols : u32,
    n_split : u32,
    scale : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind known read array<vec4<u32>>
//!bind sums read array<vec4<f32>>
//!bind soft update array<vec4<f32>>
//!bind entropy update array<f32>
//!bind picks update array<vec2<u32>>

override WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let i = flat_group(wid, num) * WG + lid;
    let n4 = p.cols / 4u;
    if (step.rows == 0u || i >= p.rows * n4) {
        return;
    }
    let row = i / n4;
    let of_row = bitcast<vec4<f32>>(known[2u * row]); // top, total, weighted
    var sum = vec4<f32>();
    for (var s = 0u; s < p.n_split; s++) {
        sum += sums[s * p.rows * n4 + i];
    }
    soft[i] = p.scale / of_row.y * sum;
    if (i % n4 == 0u) {
        let found = known[2u * row + 1u];
        entropy[row] = log(of_row.y) - of_row.z / of_row.y;
        picks[row] = found.yw;
    }
}
