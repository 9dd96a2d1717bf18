// experts_linear - y[t][slot] = W_e x[t] (or of x[t][slot]), adapters included, e = ids[t][slot]
//
//   x    read   n_tok [x n_used] x cols f32     grid   each (t, slot) in turn: a workgroup per
//   ids  read   n_tok x n_used i32                     4 WG / LANES rows of W_e
//   w    read   n_mat x rows x cols             bytes  W_e once a (t, slot)
//   z    read   n_tok x n_used x rank f32       needs  x_stride % 4 == 0, x_slot % 4 == 0;
//   b    read   see lib/lora.wgsl                      rank 0: z and b are any buffers, unread
//   y    write  n_tok x n_used x rows f32
//
// The buffer holds the experts [mat0, mat0 + n_mat): y of other experts stays as it is.
//
// Reference: experts() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!include lib/one_weight.wgsl
//!include lib/floats.wgsl
//!include lib/dot_$format.wgsl
//!include lib/lanes.wgsl
//!include lib/experts_linear.wgsl
