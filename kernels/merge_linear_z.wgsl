// merge_linear_z - y = W o and, behind y, z = A o, where for each head o = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s,
//   top the largest top_s     (decode: one row)
//
//   partial  read   n_head x n_split x             grid   groups + rank: a workgroup per R WG / LANES rows of W
//                   (head_dim + 4) f32             bytes  W and A once; partial comes from the cache
//   w        read   rows x cols                    needs  attention_split's parts; head_dim % 16 == 0;
//   a        read   rank x cols f32                       cols = n_head head_dim <= 4 HELD and 16 WG
//   y        write  rows f32; from z_at on rank f32
//
// As merge_linear where W has adapters: what they add to y is left to who reads it, since that needs all of z.
//
// Reference: attention() and linear() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.

//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/one_weight.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$SHAPE.wgsl
//!include lib/lanes.wgsl
//!include lib/merge_linear_z.wgsl
