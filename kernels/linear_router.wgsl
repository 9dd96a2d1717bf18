// linear_router - y[t] = W x[t]; beside it z[t] = M (v / sqrt(mean(v^2) + eps) / sqrt(n_embd) * scale), n = v / sqrt(mean(v^2) + eps) * norm
//   with v = state[t]     (decode: one or a few rows t)
//
//   x        read   n_tok x cols, settled      grid   n_tok * n_expert; then each t in turn: a workgroup per R WG / LANES
//   w        read   rows x cols                       rows of W
//   state    read   n_tok x n_embd f32         bytes  W and M once a row t; the others come from the cache
//   m        read   n_expert x n_embd f32      needs  cols % 16 == 0; n_embd % 16 == 0; n_embd <= 16 n_expert WG
//   vectors  read   scale and norm
//   y        write  n_tok x rows f32
//   scores   write  n_tok x n_expert f32: z
//   n        write  n_tok x n_embd f32
//   s        write  n, settled
//
// linear_digits and router_scores, which need nothing of one another, at the same time: a dispatch that waits costs more than
// either of them.
//
// Reference: linear() and the first half of router() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!without format in f32 f16 bf16
//!include lib/one_weight.wgsl
//!include lib/one_settled.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$format.wgsl
//!include lib/lanes.wgsl
//!include lib/linear_router.wgsl
