// head_norm_rope - each head u of x: u = u / sqrt(mean(u^2) + eps) * w, then for the pairs i < n_pair
//   (u[i], u[i + half]) turns by the angle whose cosine and sine the row's table holds
//
//   table  read    rows x 2 n_pair f32: cosines, sines   grid   one workgroup a (row, head)
//   w      read    head_dim f32                          bytes  2 reads + 1 write an element
//   x      update  rows x n_head x head_dim f32          needs  head_dim even
//
// n_pair 0: no rotation, table is any buffer; has_w 0: no weight, w is any buffer; has_norm 0: rotation alone.
// Reference: head_norm_rope() and rope() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sum here, f64 there.

//!axis tier plain subgroup
//!include lib/sum.wgsl
//!include lib/head_norm_rope.wgsl
