// add_norm_norm - x[t] = (x[t] + norm(branch[t]) * w) * scale[0], then y[t] = norm(x[t]) * next_w
//   with norm(v) = v / sqrt(mean(v^2) + eps)     (each row t)
//
//   branch  read    rows x cols f32   grid   one workgroup a row
//   w       read    cols f32          bytes  4 reads + 2 writes an element
//   scale   read    1 f32             needs  cols % 4 == 0; has_scale 0: factor 1, any buffer
//   next_w  read    cols f32
//   x       update  rows x cols f32
//   y       write   rows x cols f32
//
// The end of one block and the start of the next in one dispatch.
// Reference: add_norm(), scale() where has_scale, then rms_norm() in src/ops/ops_cpu.c. Tolerance 1e-10
// nmse: f32 sums here, f64 there.

//!include lib/sum.wgsl
//!include lib/add_norm_norm.wgsl
