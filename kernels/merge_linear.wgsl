// merge_linear - y = W o, where for each head o = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s,
//   top the largest top_s     (decode: one row)
//
//   partial  read   n_head x n_split x             grid   as many workgroups as one likes
//                   (head_dim + 4) f32             bytes  W once; partial comes from the cache
//   w        read   rows x cols                    needs  attention_split's parts; head_dim % 16 == 0;
//   y        write  rows f32                              cols = n_head head_dim <= 4 HELD and 16 WG
//
// attention_merge by every workgroup of the product after it: while the shares are few, that is cheaper than a dispatch
// that all would wait for.
//
// Reference: attention() and linear() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!include lib/one_weight.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$format.wgsl
//!include lib/lanes.wgsl
//!include lib/merge_linear.wgsl
