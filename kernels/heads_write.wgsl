// heads_write - each head of q and k: norm, weight, rotation; each head of v: norm; all in place, and k and v of
//   row t become position pos + pos_offset + t of the cache, in slot position % n_slots
//
//   table    read    rows x 2 n_pair f32: cosines, sines   grid   rows * (n_head + n_kv_head)
//   q_w      read    head_dim f32                          bytes  2 reads + 1 write an element, k and v twice
//   k_w      read    head_dim f32                          needs  head_dim % 4 == 0 (KV_F16: the cache's rows
//   q        update  rows x n_head x head_dim f32                 % 8 == 0), rows <= n_slots; n_head 0: q and
//   k        update  rows x n_kv_head x head_dim f32              q_w are any buffers, untouched
//   v        update  rows x n_kv_head x head_dim f32
//   k_cache  update  n_slots x n_kv_head x head_dim
//   v_cache  update  n_slots x n_kv_head x head_dim
//
// All that happens between the projections and attention, in one dispatch. A cache of halves with KV_F16.
// Reference: heads_write() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sum here, f64 there; KV_F16: one
// rounding to half.

//!axis tier plain subgroup
//!include lib/sum.wgsl
//!include lib/heads_write.wgsl
