// lora_out - dx[t] += m[t] * s A' u[t], where the adapter saw m * x     (training, with dropout)
//
//   u   read    n_tok x u_stride f32, from column at   grid   one thread per four columns of a row
//   a   read    rows of stride f32, from row at               t
//   dx  update  n_tok x cols f32                       bytes  u and A once a thread, dx 1 read + 1
//                                                             write
//                                                      needs  cols, stride % 4 == 0; DROP 1
//
// Reference: add_row() in src/ops/ops_cpu_bwd.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!include lib/base.wgsl

struct Params {
    n_tok : u32,
    cols : u32,
    stride : u32, // f32 from row to row of A
    rank : u32,   // of the adapter
    u_stride : u32,
    at : u32,     // its first row of A, and column of u
    s : f32,
    salt : u32,
    share : f32,
    kept : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind u read array<f32>
//!bind a read array<vec4<f32>>
//!bind dx update array<vec4<f32>>

const WG : u32 = 64u;

//!include train/dropout.wgsl

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let n4 = p.cols / 4u;
    let i = flat_group(wid, num) * WG + lid;
    let tok = i / n4;
    let c = i % n4;
    if (tok >= p.n_tok) {
        return;
    }
    var sum = vec4<f32>();
    for (var k = 0u; k < p.rank; k++) {
        sum += p.s * u[tok * p.u_stride + p.at + k] * a[(p.at + k) * (p.stride / 4u) + c];
    }
    if (DROP == 1u) {
        sum *= dropout_factors(dropout_row(tok), c);
    }
    dx[tok * n4 + c] += sum;
}
