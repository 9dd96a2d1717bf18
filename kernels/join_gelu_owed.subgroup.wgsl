// join_gelu_owed.subgroup - to = x + norm(branch) * post, then y = gelu(W to) * by[by_col ...] and, behind to, M to,
//   with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one row)
//
//   x       read   cols f32                 grid   a workgroup per four rows of W and M
//   branch  read   cols f32; behind it what it is owed, see lib/owed.wgsl
//                                           bytes  W and M once; the rest comes from the cache
//   post    read   cols f32                 needs  cols % 16 == 0; cols <= 16 WG; OWED 0: b is any buffer, unread
//   w       read   W, rows x cols f32, then M, n_more x cols f32
//   by      read   rows f32 at by_col
//   to      write  cols f32, then n_more f32
//   y       write  rows f32
//   b       read   of what the branch is owed, see lib/lora.wgsl
//
// As join_gelu for a matrix that is merged with its adapters. M is for a block further on: lib/ahead.wgsl.
//
// Reference: cpu_join_linear_gelu_mul() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

enable subgroups;
//!include lib/lanes.subgroup.wgsl
//!include lib/join_gelu_owed.wgsl
