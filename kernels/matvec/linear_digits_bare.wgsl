// linear_digits_bare - y[t] = scale * W x[t]     (decode: one or a few rows t)
//
//   x   read   n_tok x cols, settled
//   w   read   rows x cols
//   y   write  n_tok x rows f32         needs  cols % 16 == 0
//   grid   each t in turn: a workgroup per R WG / LANES rows of W
//   bytes  W once a row t; x comes from the cache
//
// As linear_digits, without adapters and without a gelu.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!axis product linear
//!axis matrices 1
//!axis input int8
//!axis adapter none
//!without format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl
