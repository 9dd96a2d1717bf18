// join_linear_z - to = (x + norm(branch) * post) * scale[0], h = norm(to) * next_w (has_next 0: h = to), then y = W h and, behind
//   y, z = A h, with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one row)
//
//   x        read   cols f32            grid   groups + rank + more
//   branch   read   cols f32; behind it what it is owed, see lib/owed.wgsl
//                                       bytes  W and A once; the rest comes from the cache
//   vectors  read   cols f32 at post_at, 1 f32 at scale_at, cols f32 at next_at
//                                       needs  cols % 16 == 0; cols <= 4 HELD and 16 WG; has_branch 0: nothing is added, branch is
//                                              any buffer; has_scale 0: factor 1; owed_rank 0: b is any buffer, unread
//   b        read   of what the branch is owed, see lib/lora.wgsl
//   w        read   rows x cols
//   a        read   rank x cols f32, then more x cols f32, see lib/ahead.wgsl
//   to       write  cols f32, then (those times to) more f32
//   y        write  rows f32; from z_at on rank f32
//
// The product with one matrix that has adapters: what they add to y is left to who reads it, since that needs all of z.
//
// Reference: cpu_join_linears() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/one_weight.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$SHAPE.wgsl
//!include lib/lanes.wgsl
//!include lib/join_linear_z.wgsl
