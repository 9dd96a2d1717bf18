// gelu_linear_own.subgroup - y = W v + s2 B2 A v, where v = gelu(g + s B z) * by[by_col ...]     (decode: one row)
//
//   g   read   cols f32; behind it z, see lib/owed.wgsl   grid   a workgroup per WG / LANES rows of W
//   b   read   see lib/lora.wgsl                          bytes  W once; the rest comes from the cache
//   by  read   f32                                        needs  cols 256 or 512; by_col % 4 == 0; owed_rank % 8 == 0;
//   w   read   rows x cols                                       cols owed_rank <= 16,384; rank <= 256, 0: a and b2 are any
//   a   read   rank x cols f32                                   buffers, unread
//   b2  read   see lib/lora.wgsl
//   y   write  rows f32
//
// The product after one that is owed what adapters add, and its gelu: every workgroup makes the short row for itself, and A v.
//
// Reference: cpu_join_linear_gelu_mul() in src/ops/ops_cpu_join.c and linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32
// sums here, f64 there.

enable subgroups;
//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/one_weight.wgsl
//!include lib/floats.wgsl
//!include lib/dot_$SHAPE.wgsl
//!include lib/lanes.subgroup.wgsl
//!include lib/gelu_linear_own.wgsl
