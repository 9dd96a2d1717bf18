// add_norm - x[t] = x[t] + branch[t] / sqrt(mean(branch[t]^2) + eps) * w
//
//   branch  read    rows x cols f32   grid   one workgroup a row
//   w       read    cols f32          bytes  3 reads + 1 write an element
//   x       update  rows x cols f32   needs  cols % 4 == 0
//
// Reference: add_norm() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sum here, f64 there.

//!axis tier plain subgroup
//!include lib/sum.wgsl
//!include lib/add_norm.wgsl
