// add - x += b
//
//   b  read    n f32                  grid   one thread per number, workgroups over x and y
//   x  update  n f32                  bytes  2 reads + 1 write per number
//                                     needs  nothing
//
// Reference: add() in src/ops/ops_cpu.c. Tolerance 0: one rounding here and there.

//!include lib/base.wgsl

struct Params {
    n : u32, // numbers: rows * cols
}

override WG : u32 = 256u;

@group(0) @binding(0) var<uniform> p : Params;
//!bind b read array<f32>
//!bind x update array<f32>

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lane : u32) {
    let i = flat_group(wid, num) * WG + lane;
    if (i < p.n) {
        x[i] += b[i];
    }
}
