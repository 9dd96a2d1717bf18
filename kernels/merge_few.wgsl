// merge_few - y = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s, top the largest top_s
//
//   partial  read   rows x n_head x n_split x      grid   a thread for sixteen columns of y, each row in turn
//                   (head_dim + 4) f32             bytes  partial once, y once, s once
//   y        write  rows x n_head x head_dim f32   needs  attention_split's parts, n_split <= 8, head_dim % 16 == 0
//   s        write  y, settled
//
// attention_merge for few shares: a thread weighs them for itself (lib/merged), so that none waits for another.
// Reference: attention() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.
//!include lib/grid.wgsl
//!include lib/merged.wgsl
//!include lib/settle.wgsl
//!include lib/put_run.wgsl
struct Params {
    n_run : u32, // rows * n_head * head_dim / 16
    cols : u32,  // n_head * head_dim
    head_dim : u32,
    n_split : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> partial : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> s : array<vec4<u32>>;

const WG : u32 = 64u;

fn rank4() -> u32 {
    return 0u;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let run = flat_group(wid, num) * WG + id;
    if (run >= p.n_run) {
        return;
    }
    let o = merged(4u * run);
    y[4u * run] = o.a;
    y[4u * run + 1u] = o.b;
    y[4u * run + 2u] = o.c;
    y[4u * run + 3u] = o.d;
    let runs = p.cols / 16u;
    let row = run / runs;
    put_run(4u * row * runs, p.cols, run - row * runs, settle(o.a, o.b, o.c, o.d));
}
