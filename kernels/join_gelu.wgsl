// join_gelu - to[t] = x[t] + norm(branch[t]) * post, then y[t] = gelu(W to[t]) * by[t][by_col ...],
//   with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one or a few rows t)
//
//   x       read   n_tok x cols f32   grid   each t in turn: as many workgroups as one likes
//   branch  read   n_tok x cols f32   bytes  W once a row t; the rest comes from the cache
//   post    read   cols f32           needs  cols % 16 == 0; cols <= 4 HELD and 16 WG
//   w       read   rows x cols
//   by      read   n_tok rows of f32
//   to      write  n_tok x cols f32
//   y       write  n_tok x rows f32
//
// Every workgroup joins for itself: that is cheaper than a dispatch that all would wait for.
//
// Reference: cpu_join_linear_gelu_mul() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!include lib/one_weight.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$format.wgsl
//!include lib/lanes.wgsl
//!include lib/join_gelu.wgsl
