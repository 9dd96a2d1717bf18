// attn_decode_shared - the queries of one row, normalised, weighted and rotated; then part s of
//   n_split of attention:
//   for each head, over its split of the history, top = max q.k_j,  total = sum e^(q.k_j - top),
//   o = sum e^(q.k_j - top) v_j
//
//   table    read   2 n_pair f32: cosines, sines
//   q_w      read   head_dim f32
//   q        read   n_head x head_dim f32
//   k_cache  read   n_slots x n_kv_head x head_dim
//   v_cache  read   as k_cache
//   a        read   rank x n_head x head_dim f32; LORA 0: any buffer, unread
//   partial  write  n_head x n_split x (head_dim + 4 + rank) f32:
//                   o, top, total, 0, 0, A o
//   grid   n_kv_head * chunks * n_split
//   bytes  the history once (a chunk), q for each workgroup
//   needs  head_dim % 8 == 0 and <= 512, chunks = ceil(group / HEADS), rows 1, 30,100 bytes of
//          workgroup memory (WG 256)
//
// For layers that read another layer's cache. See attention_split for the splits, lib/attn_decode
// for the queries.
// Reference: the nodes of rule attend_heads, in src/ops/ops_cpu.c, with attn_reduce. Tolerance
// 1e-9 nmse: f32 here.

//!axis split partial_z
//!axis cache read
//!include lib/attn_decode.wgsl

struct Params {
    rows : u32,
    n_head : u32,
    n_kv_head : u32,
    head_dim : u32,
    n_slots : u32,
    window : u32, // 0: all
    pos_offset : u32,
    n_split : u32,
    n_pair : u32,
    rank : u32, // LORA: rows of A
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind table read array<f32>
//!bind q_w read array<vec4<f32>>
//!bind q read array<vec4<f32>>
//!bind k_cache read array<vec4<u32>>
//!bind v_cache read array<vec4<u32>>
//!bind a read array<vec4<f32>>
//!bind partial update array<vec4<f32>>

fn q_weight(i : u32) -> vec4<f32> {
    return q_w[i];
}

fn q_four(i : u32) -> vec4<f32> {
    return q[i];
}
