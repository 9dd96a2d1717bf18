// attend_led.subgroup - to = (x + norm(branch) * post) * scale[0]; then of what lies behind x and the branch, as lib/ahead.wgsl has it: heads of q and k
//   normalised, weighted and turned, of v normalised; k and v become position pos + pos_offset of the cache, in slot
//   position % n_slots; then part s of n_split of attention: for each head, over its share of the history, top = max q.k_j,
//   total = sum e^(q.k_j - top),  o = sum e^(q.k_j - top) v_j
//
//   table    read    2 n_pair f32: cosines, sines           grid   n_kv_head * chunks * n_split
//   vectors  read    at their places, in vec4s: post, what heads of q and of k are multiplied with; scale
//                                                           bytes  the history once (a chunk), the rest for each workgroup
//   x        read    cols f32, then queries, keys, values,  needs  head_dim % 8 == 0 and <= 512, cols <= 16 WG,
//                    and n_more f32 at x_more
//   branch   read    the same, and at branch_more                  chunks = ceil(group / HEADS), rows 1,
//   a        read    rank x n_head x head_dim f32;                 32,200 bytes of workgroup memory (WG 256);
//                    LORA 0: any buffer, unread                    KV_F16: a cache of halves
//   to       write   cols f32, then n_more f32
//   partial  write   n_head x n_split x (head_dim + 4 + rank) f32:
//                    o, top, total, 0, 0, A o
//   k_cache  update  n_slots x n_kv_head x head_dim
//   v_cache  update  as k_cache
//
// As attend where the products before it were made ahead. The workgroups whose share ends with the new position write it (where heads
// of one kv head are in several chunks, each the same numbers) and read it back; nobody else looks at that slot.
// Reference: cpu_join_linears() in src/ops/ops_cpu_join.c, heads_write() and attention() in src/ops/ops_cpu.c, with attention_merge.
// Tolerance 1e-9 nmse: f32 here; KV_F16: one rounding to half.

enable subgroups;
//!include lib/join_sums.subgroup.wgsl
//!include lib/attend_led_new.wgsl
