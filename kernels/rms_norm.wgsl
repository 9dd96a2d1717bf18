// rms_norm - y[t] = x[t] / sqrt(mean(x[t]^2) + eps) * w     (each row t)
//
//   x  read   rows x cols f32        grid   one workgroup a row
//   w  read   cols f32               bytes  2 reads + 1 write an element
//   y  write  rows x cols f32        needs  cols % 4 == 0; has_w 0: w is any buffer, unread
//
// Reference: rms_norm() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sum here, f64 there.

//!axis tier plain subgroup
//!include lib/sum.wgsl
//!include lib/rms_norm.wgsl
