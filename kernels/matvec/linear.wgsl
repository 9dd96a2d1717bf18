// linear - y[t] = scale * (W x[t] + sum of the adapters s B z[t]);
//   with GELU y[t] = gelu(that) * by[t][by_col ...]     (decode: one or a few rows t)
//
//   x   read   n_tok x cols
//   w   read   rows x cols
//   z   read   n_tok x rank f32
//   b   read   see lib/lora.wgsl
//   by  read   n_tok rows of f32
//   y   write  n_tok x rows f32
//   grid   each t in turn: a workgroup per R WG / LANES rows of W
//   bytes  W once a row t; x comes from the cache
//   needs  x_stride % 4 == 0; x finite up to 8-fold columns; planes: cols % 16 == 0;
//          LORA 0: z and b are any buffers, unread; GELU 0: by is any buffer, unread
//
// A row group of LANES lanes shares R rows of W and divides the columns; then the lanes add up.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts rows f32 int8
//!axis tier plain subgroup
//!axis product linear
//!axis matrices 1
//!axis input memory
//!axis adapter given
//!without acts != rows && format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl
