// attention_split - part s of n_split of attention: for each row and head, over its split of the
//   history,
//   top = max q.k_j,  total = sum e^(q.k_j - top),  o = sum e^(q.k_j - top) v_j
//
//   q        read   rows x n_head x head_dim f32     grid   rows * n_kv_head * chunks * n_split
//   k_cache  read   n_slots x n_kv_head x head_dim   bytes  the history once (a chunk), q, partial
//   v_cache  read   as k_cache                       needs  head_dim % 4 == 0 and <= 512, chunks =
//   partial  write  rows x n_head x n_split x               ceil(group / HEADS)
//                   (head_dim + 4) f32: o, top, total, 0, 0
//
// group = n_head / n_kv_head query heads share a kv head; a workgroup takes up to HEADS of them, so
// that keys and values are read once for all. Row t is at pos + pos_offset + t; the loop bounds
// come from the step, so a recorded dispatch serves every position. A split without positions has
// total 0 and no o.
// Reference: attention() in src/ops/ops_cpu.c, with attn_reduce. Tolerance 1e-9 nmse: f32 here.

//!axis split partial
//!include lib/attention_split.wgsl

struct Params {
    rows : u32,
    n_head : u32,
    n_kv_head : u32,
    head_dim : u32,
    n_slots : u32,
    window : u32, // 0: all
    pos_offset : u32,
    n_split : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind q read array<vec4<f32>>
//!bind k_cache read array<vec4<u32>>
//!bind v_cache read array<vec4<u32>>
//!bind partial update array<vec4<f32>>

fn query(part : Part, head : u32, d : u32) -> vec4<f32> {
    return q[(part.row_q + head) * head4() + d];
}

fn query_scale(head : u32) -> f32 {
    return 1.0;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let part = part_of(flat_group(wid, num));
    if (part.exists) {
        attend_split(part, lid);
    }
}
