// gate_up_lora - y[t] = gelu(gate x[t] + s B z[t]) * (up x[t] + s B2 z2[t]), z = A x
//   (decode: one or a few rows t)
//
//   x   read   n_tok x cols, ready
//   w   read   gate, rows x cols
//   w2  read   up, as w
//   y   write  n_tok x rows f32
//   s   write  y, ready
//   b   read   see lib/lora.wgsl; any buffer where the matrix has no adapter
//   b2  read   the same
//   grid   each t in turn: a workgroup per R WG / LANES rows
//   bytes  both matrices once a row t; x comes from the cache
//   needs  cols % 16 == 0; both matrices in one shape, whole; makes_ready: rows % 16 == 0 and R WG
//          / LANES % 16 == 0, else s is any buffer, unwritten
//
// As gate_up, for matrices of which at least one has adapters. Behind the ready rows of x lies
// z = A x: n_tok x rank f32 of each such matrix.
//
// Reference: the nodes of rule gate_up, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here,
// f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product gate_up
//!axis matrices 2
//!axis input memory
//!axis adapter given
//!without format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/gate_up.wgsl
