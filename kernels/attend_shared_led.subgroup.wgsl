// attend_shared_led.subgroup - to = (x + norm(branch) * post) * scale[0]; then of what lies behind x and the branch, as lib/ahead.wgsl has it: the queries,
//   normalised, weighted and turned; then part s of n_split of attention: for each head, over its share of the history,
//   top = max q.k_j,  total = sum e^(q.k_j - top),  o = sum e^(q.k_j - top) v_j
//
//   table    read   2 n_pair f32: cosines, sines            grid   n_kv_head * chunks * n_split
//   vectors  read   at their places, in vec4s: post, what heads of q are multiplied with; scale
//                                                           bytes  the history once (a chunk), the rest for each workgroup
//   x        read   cols f32, then the queries, and n_more  needs  head_dim % 8 == 0 and <= 512, cols <= 16 WG,
//                   f32 at x_more
//   branch   read   the same, and at branch_more                   chunks = ceil(group / HEADS), rows 1,
//   a        read   rank x n_head x head_dim f32;                  32,200 bytes of workgroup memory (WG 256)
//                   LORA 0: any buffer, unread
//   to       write  cols f32, then n_more f32
//   partial  write  n_head x n_split x (head_dim + 4 + rank) f32:
//                   o, top, total, 0, 0, A o
//   k_cache  read   n_slots x n_kv_head x head_dim
//   v_cache  read   as k_cache
//
// As attend_shared where the products before it were made ahead.
// Reference: cpu_join_linears() in src/ops/ops_cpu_join.c, head_norm_rope() and attention() in src/ops/ops_cpu.c, with attention_merge.
// Tolerance 1e-9 nmse: f32 here.

enable subgroups;
//!include lib/join_sums.subgroup.wgsl
//!include lib/attend_led_shared.wgsl
