// softcap - x = cap * tanh(x / cap)
//
//   x  update  n f32                  grid   one thread per number, workgroups over x and y
//                                     bytes  1 read + 1 write per number
//                                     needs  cap > 0
//
// Reference: softcap() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: the device's tanh.

//!include lib/grid.wgsl

struct Params {
    n : u32, // numbers: rows * cols
    cap : f32,
}

override WG : u32 = 256u;

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read_write> x : array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lane : u32) {
    let i = flat_group(wid, num) * WG + lane;
    if (i < p.n) {
        // Past 15 tanh is 1 in f32, and some drivers' tanh is exp(2x)/exp(2x) and overflows.
        x[i] = p.cap * tanh(clamp(x[i] / p.cap, -15.0, 15.0));
    }
}
