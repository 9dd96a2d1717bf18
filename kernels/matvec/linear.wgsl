// linear - y[t] = scale * (W x[t] + sum of the adapters s B z[t])     (decode: one or a few rows
//   t); with GELU y[t] = gelu(that) * by[t][by_col ...]
//
//   x   read   n_tok x cols        grid   each t in turn: a workgroup per R WG / LANES rows of W
//   w   read   rows x cols         bytes  W once a row t; x comes from the cache
//   z   read   n_tok x rank f32    needs  x_stride % 4 == 0; x f32, finite up to 8-fold columns, or
//   b   read   see lib/lora.wgsl          int8 planes, cols % 16 == 0; LORA 0: z and b are any
//   by  read   n_tok rows of f32          buffers, unread GELU 0: by is any buffer, unread
//   y   write  n_tok x rows f32
//
// A row group of LANES lanes shares R rows of W and splits the columns; then the lanes add up.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product linear
//!axis matrices 1
//!axis input memory
//!axis adapter given
//!without acts == int8 && format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl
