// gate_up - y[t] = gelu(gate x[t]) * up x[t]     (decode: one or a few rows t)
//
//   x   read   n_tok x cols
//   w   read   gate, rows x cols
//   w2  read   up, as w
//   y   write  n_tok x rows f32
//   s   write  y, ready
//   grid   each t in turn: a workgroup per R WG / LANES rows
//   bytes  both matrices once a row t; x comes from the cache
//   needs  x_stride % 4 == 0; x finite up to 8-fold columns; planes: cols % 16 == 0; both matrices
//          in one shape, whole; makes_ready: rows % 16 == 0 and R WG / LANES % 16 == 0, else s is
//          any buffer, unwritten
//
// As two products of linear in one loop: the loads of both matrices are on their way together. The
// results may be left ready for the product after it.
//
// Reference: the nodes of rule gate_up, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here,
// f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts rows f32 int8
//!axis tier plain subgroup
//!axis product gate_up
//!axis matrices 2
//!axis input memory
//!axis adapter none
//!without acts != rows && format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/gate_up.wgsl
