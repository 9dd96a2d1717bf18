// attn_decode - of one row: its heads of q and k normalised, weighted and rotated, of v normalised;
//   k and v become position pos + pos_offset of the cache, in slot position % n_slots; then part s
//   of n_split of attention:
//   for each head, over its split of the history, top = max q.k_j,  total = sum e^(q.k_j - top),
//   o = sum e^(q.k_j - top) v_j
//
//   table    read    2 n_pair f32: cosines, sines
//   vectors  read    weights of the norms of q and k, at
//                    their places, in vec4s
//   q        read    n_head x head_dim f32
//   k        read    n_kv_head x head_dim f32
//   v        read    as k; unread when v_from_k
//   k_cache  update  n_slots x n_kv_head x head_dim
//   v_cache  update  as k_cache
//   partial  write   n_head x n_split x (head_dim + 4) f32:
//                    o, top, total, 0, 0
//   grid   n_kv_head * chunks * n_split
//   bytes  the history once (a chunk), q for each workgroup
//   needs  head_dim % 8 == 0 and <= 512, chunks = ceil(group / HEADS), rows 1, 30,100 bytes of
//          workgroup memory (WG 256); KV_F16: a cache of halves
//
// The workgroups whose split ends with the new position write it (where heads of one kv head are in
// several chunks, each the same numbers) and read it back; no other workgroup reads that slot.
// Reference: the nodes of rule attend_heads, in src/ops/ops_cpu.c, with attn_reduce. Tolerance
// 1e-9 nmse: f32 here; KV_F16: one rounding to half.

//!axis split partial
//!axis cache written
//!include lib/attn_decode.wgsl
//!bind partial update array<vec4<f32>>
