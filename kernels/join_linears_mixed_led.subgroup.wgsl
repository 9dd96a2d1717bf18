// join_linears_mixed_led.subgroup - to = (x + norm(branch) * post) * scale[0], h = norm(to) * next_w, then up to three products y = W h + s B z, and behind
//   to M to, with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one row)
//
//   x        read   cols f32            grid   groups + n_more: a workgroup per R WG / LANES rows of the matrices
//   branch   read   cols f32            bytes  the matrices, B and M once; the rest comes from the cache
//   vectors  read   cols f32 at post_at, 1 f32 at scale_at, cols f32 at next_at
//                                       needs  cols % 16 == 0; cols <= 4 HELD and 16 WG; has_scale 0: factor 1
//   w        read   rows x cols
//   w2       read   rows2 x cols        rows2 or rows3 0: any buffers, unread
//   w3       read   rows3 x cols of Q6_K
//   b        read   those of each, see lib/led_rows.wgsl
//   more     read   M, n_more x cols f32; n_more 0: any buffer, unread
//   to       write  cols f32, then n_more f32
//   y        write  rows f32 at y_at, rows2 f32 at y_at2, rows3 f32 at y_at3
//
// As join_linears_mixed where matrices have adapters; behind x and the branch lies what their z come of. M is for a block further on:
// lib/ahead.wgsl.
//
// Reference: cpu_join_linears() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

enable subgroups;
//!for SHAPE in q4_k q5_k
//!include lib/three_weights.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$SHAPE.wgsl
//!include lib/third_q6_k.wgsl
//!include lib/lanes.subgroup.wgsl
//!include lib/join_linears_led.wgsl
