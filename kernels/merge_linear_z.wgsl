// merge_linear_z - y = W o + sum of the adapters s B z, where for each head
//   o = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s, top the largest top_s, and z = A o is the same sum of what the
//   shares have behind them     (decode: one row)
//
//   partial  read   n_head x n_split x             grid   a workgroup per R WG / LANES rows of W
//                   (head_dim + 4 + rank) f32      bytes  W and B once; partial comes from the cache
//   w        read   rows x cols                    needs  attend's parts; head_dim % 16 == 0; rank <= head_dim / 4 and 64;
//   b        read   see lib/lora.wgsl                     cols = n_head head_dim <= 4 HELD and 16 WG; n_head rank <= 4 WG;
//   y        write  rows f32                              rows % 4 == 0
//
// As merge_linear where W has adapters.
//
// Reference: attention() and linear() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!without format in f32 f16 bf16
//!include lib/one_weight.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$format.wgsl
//!include lib/lanes.wgsl
//!include lib/merge_linear_z.wgsl
