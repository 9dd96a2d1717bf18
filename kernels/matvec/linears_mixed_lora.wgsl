// linears_mixed_lora - y[t] = W x[t] + s B z[t], y2[t] = W2 x[t] + s B2 z2[t], y3[t] alike, z = A x
//   (decode: one or a few rows t)
//
//   x   read   n_tok x cols, ready
//   w   read   rows x cols
//   w2  read   rows2 x cols
//   w3  read   rows3 x cols of Q6_K
//   y   write  n_tok x rows f32
//   y2  write  n_tok x rows2 f32
//   y3  write  n_tok x rows3 f32
//   b   read   see lib/lora.wgsl; any buffer where the matrix has no adapter
//   b2  read   the same
//   b3  read   the same
//   grid   each t in turn: a workgroup per WG / LANES row groups, each of R rows of one matrix
//   bytes  each matrix once a row t; x comes from the cache
//   needs  cols % 16 == 0; rows2 or rows3 0: any buffers, unread and unwritten
//
// As linears_lora, for the layers of usual files whose values have more bits than their queries
// and keys.
//
// rows, rows2 and rows3 are the rows of p.w[0], p.w[1] and p.w[2].
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product own
//!axis matrices 3
//!axis input memory
//!axis adapter given
//!axis third q6_k
//!without !(format in q4_k q5_k)
//!include lib/lanes.wgsl
//!include lib/linears.wgsl
