// add_norm - x[t] = (x[t] + branch[t] / sqrt(mean(branch[t]^2) + eps) * w) * scale[0]
//
//   branch  read    rows x cols f32   grid   one workgroup a row
//   w       read    cols f32          bytes  3 reads + 1 write an element
//   scale   read    1 f32             needs  cols % 4 == 0; has_scale 0: factor 1, any buffer
//   x       update  rows x cols f32
//
// Reference: add_norm() in src/ops/ops_cpu.c, then scale() where has_scale. Tolerance 1e-10 nmse: f32
// sum here, f64 there.

//!include lib/sum.wgsl
//!include lib/add_norm.wgsl
