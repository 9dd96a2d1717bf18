// join_linear_own.subgroup - to[t] = (x[t] + norm(branch[t]) * post) * scale[0], h = norm(to[t]) * next_w (has_next 0: h = to[t]), then
//   y[t] = W h + s B A h, with GELU gelu(that) * by[t][by_col ...], with norm(v) = v / sqrt(mean(v^2) + eps)
//   (decode: one or a few rows t)
//
//   x        read   n_tok x cols f32   grid   each t in turn: as many workgroups as one likes
//   branch   read   n_tok x cols f32   bytes  W once a row t; A for each workgroup, from the cache
//   vectors  read   cols f32 at post_at, 1 f32 at scale_at, cols f32 at next_at
//                                      needs  cols % 16 == 0; cols <= 4 HELD and 16 WG; has_branch 0: nothing is added, branch is
//                                             any buffer; has_scale 0: factor 1; rank from 8 to 256
//   w        read   rows x cols
//   by       read   n_tok rows of f32; GELU 0: any buffer, unread
//   a        read   rank x cols f32
//   b        read   see lib/lora.wgsl
//   to       write  n_tok x cols f32
//   y        write  n_tok x rows f32
//
// As join_gelu, and join_linears of one matrix, where so few workgroups read the stream that each of them makes A h for itself.
//
// Reference: cpu_join_linear_gelu_mul() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

enable subgroups;
//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/one_weight.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$SHAPE.wgsl
//!include lib/lanes.subgroup.wgsl
//!include lib/hold.subgroup.wgsl
//!include lib/join_linear_own.wgsl
