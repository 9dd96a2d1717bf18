// copy_rows - y = rows [first, first + rows) of x
//
//   x  read   (first + rows) x cols f32    grid   one thread per number, workgroups over x and y
//   y  write  rows x cols f32              bytes  1 read + 1 write per number
//                                          needs  nothing
//
// Reference: copy_rows() in src/ops/ops_cpu.c. Tolerance 0: bits are copied.

//!include lib/base.wgsl

struct Params {
    n : u32,     // numbers: rows * cols
    first : u32, // numbers to skip: first * cols
}

override WG : u32 = 256u;

// u32: a copy keeps the bits of every NaN, and serves i32 tensors too.
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<u32>
//!bind y update array<u32>

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lane : u32) {
    let i = flat_group(wid, num) * WG + lane;
    if (i < p.n) {
        y[i] = x[p.first + i];
    }
}
