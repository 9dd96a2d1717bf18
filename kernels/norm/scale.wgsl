// scale - x times a number, or capped. HOW 0: x *= w[0]; 1: x *= c; 2: x = c tanh(x / c)
//
//   w  read    1 f32; any buffer but for HOW 0   grid   one thread per number, workgroups over x
//   x  update  n f32                                    and y
//                                                bytes  1 read + 1 write per number
//                                                needs  c > 0 for HOW 2
//
// Reference: scale(), times() and softcap() in src/ops/ops_cpu.c. Tolerance 0 for products (one
// rounding here and there), 1e-10 nmse for tanh.

//!include lib/base.wgsl

struct Params {
    n : u32, // numbers: rows * cols
    c : f32,
}

override WG : u32 = 256u;
override HOW : u32 = 0u;

@group(0) @binding(0) var<uniform> p : Params;
//!bind w read array<f32>
//!bind x update array<f32>

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lane : u32) {
    let i = flat_group(wid, num) * WG + lane;
    if (i >= p.n) {
        return;
    }
    if (HOW == 2u) {
        // Some devices overflow in tanh of a large number.
        x[i] = p.c * tanh(clamp(x[i] / p.c, -15.0, 15.0));
    } else {
        x[i] *= select(p.c, w[0], HOW == 0u);
    }
}
