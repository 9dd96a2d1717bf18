// linear_digits_z - y = W x and, behind y, z = A x in parts that are to be added up     (decode: one row)
//
//   x   read   cols, settled        grid   groups + rank * parts: a workgroup per R WG / LANES rows of W
//   w   read   rows x cols          bytes  W and A once; x comes from the cache
//   a   read   rank x cols f32      needs  cols % 16 == 0
//   y   write  rows f32; from z_at on parts x rank f32
//
// As linear_digits where W has adapters: what they add to y is left to who reads it, since that needs all of z.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!for SHAPE in q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/one_weight.wgsl
//!include lib/one_settled.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$SHAPE.wgsl
//!include lib/lanes.wgsl
//!include lib/linear_digits_z.wgsl
