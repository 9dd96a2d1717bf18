// linears - y[t] = W x[t], y2[t] = W2 x[t], y3[t] = W3 x[t]     (decode: one or a few rows t)
//
//   x   read   n_tok x cols, ready
//   w   read   rows x cols
//   w2  read   rows2 x cols
//   w3  read   rows3 x cols
//   y   write  n_tok x rows f32
//   y2  write  n_tok x rows2 f32
//   y3  write  n_tok x rows3 f32
//   grid   each t in turn: a workgroup per WG / LANES row groups, each of R rows of one matrix
//   bytes  each matrix once a row t; x comes from the cache
//   needs  cols % 16 == 0; rows2 or rows3 0: any buffers, unread and unwritten
//
// Queries, keys and values in one dispatch, for rows that an earlier kernel has left ready
// (lib/acts).
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
//!axis adapter none
//!axis third alike
//!without format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/linears.wgsl
