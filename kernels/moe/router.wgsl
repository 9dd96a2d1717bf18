// router - q = softmax(scores); ids: the n_used largest, of equals the lower index, best first;
//   weights: their q, made to sum 1     (each row)
//
//   scores   read   rows x n_expert f32      grid   one workgroup a row
//   ids      write  rows x n_used i32        bytes  scores once, results once
//   weights  write  rows x n_used f32        needs  n_used <= n_expert <= 1024
//
// NaN comes after every number. A row with NaN, or whose best score is infinite, has weights that
// are all NaN, and ids as any other.
//
// Reference: route() in src/ops/ops_cpu.c. Tolerance: ids equal, weights 1e-9 nmse
// (f32 exponentials here).

//!axis tier plain
//!include lib/base.wgsl
//!include lib/sum.wgsl

struct Params {
    rows : u32,
    n_expert : u32,
    n_used : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind scores read array<f32>
//!bind ids update array<u32>
//!bind weights update array<f32>

override WG : u32 = 256u;
const ROUTE_FOURS : u32 = 256u;
//!include lib/route.wgsl

fn score_at(i : u32) -> f32 {
    return scores[i];
}

fn sum_two(v : vec2<f32>, id : u32) -> vec2<f32> {
    let first = workgroup_sum(v.x, id);
    return vec2<f32>(first, workgroup_sum(v.y, id));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let row = flat_group(wid, num);
    if (row < p.rows) {
        route(row, lid);
    }
}
