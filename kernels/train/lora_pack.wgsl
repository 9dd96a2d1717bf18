// lora_pack - A and B of one adapter to their places among all adapters of a linear     (training)
//
//   a   read    n_mat x rank x cols f32   grid   ceil(n_mat * rank * max(cols, rows) / 64)
//   b   read    n_mat x rows x rank f32          workgroups
//   pa  update  see src/gpu/adapt.h       bytes  1 read + 1 write an element of A and B
//   pb  update  see src/gpu/adapt.h       needs  nothing
//
// Reference: write_rows() in src/gpu/adapt.c. Tolerance 0.

//!include lib/base.wgsl

struct Params {
    rank : u32,
    cols : u32,
    rows : u32,
    n_mat : u32,
    at : u32,     // first row among all
    all : u32,    // rows of all together
    stride : u32, // f32 from row to row of pa
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind a read array<f32>
//!bind b read array<f32>
//!bind pa update array<f32>
//!bind pb update array<f32>

const WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let wide = max(p.cols, p.rows);
    let i = flat_group(wid, num) * WG + lid;
    let row = i / wide; // of all matrices
    let j = i % wide;
    if (row >= p.n_mat * p.rank) {
        return;
    }
    let mat = row / p.rank;
    let k = row % p.rank;
    let to = mat * p.all + p.at + k;
    if (j < p.cols) {
        pa[to * p.stride + j] = a[row * p.cols + j];
    }
    if (j < p.rows) {
        pb[to * p.rows + j] = b[(mat * p.rows + j) * p.rank + k];
    }
}
