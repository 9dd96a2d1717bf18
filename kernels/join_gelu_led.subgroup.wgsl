// join_gelu_led.subgroup - to = x + norm(branch) * post, then y = gelu(W4 to) * by[by_col ...] and, behind to, up to three products
//   W (to * next), then M to, with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one row)
//
//   x        read   cols f32                 grid   n_groups: gate_groups for W4, the others for W, W2 and W3
//   branch   read   cols f32
//   vectors  read   cols f32 at post_at, cols f32 at next_at
//                                            bytes  the matrices once; the rest comes from the cache
//   w        read   rows x cols              needs  cols % 16 == 0; cols <= 4 HELD and 16 WG
//   w2       read   rows2 x cols             rows, rows2 or rows3 0: any buffers, unread
//   w3       read   rows3 x cols
//   w4       read   W4, rows4 x cols; MERGED 1: as f32, then M, n_more x cols f32
//   by       read   rows4 f32 at by_col
//   to       write  cols f32, then rows, rows2, rows3 and n_more f32
//   y        write  rows4 f32
//
// As join_gelu, with the part of the next block's first products that is known already: lib/ahead.wgsl. A matrix
// that is merged with its adapters is floats.
//
// Reference: cpu_join_linear_gelu_mul() and cpu_join_linears() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

enable subgroups;
//!for SHAPE in q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/four_weights.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$SHAPE.wgsl
//!include lib/third_alike.wgsl
//!include lib/lanes.subgroup.wgsl
//!include lib/join_gelu_led.wgsl
