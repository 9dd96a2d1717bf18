// linear_digits - y[t] = scale * (W x[t] + sum of the adapters s B z[t])     (decode: one or a few
//   rows t); with GELU y[t] = gelu(that) * by[t][by_col ...]
//
//   x   read   n_tok x cols, settled   grid   each t in turn: a workgroup per R WG / LANES rows of
//   w   read   rows x cols                    W
//   z   read   n_tok x rank f32        bytes  W once a row t; x comes from the cache
//   b   read   see lib/lora.wgsl       needs  cols % 16 == 0; LORA 0: z and b are any buffers,
//   by  read   n_tok rows of f32              unread GELU 0: by is any buffer, unread
//   y   write  n_tok x rows f32
//
// As linear, for rows that the kernel before has settled (lib/base): multiplying digits takes half
// the time of decoding codes to floats.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!axis product linear
//!axis matrices 1
//!axis input int8
//!axis adapter given
//!without format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl
