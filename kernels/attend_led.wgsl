// attend_led - to = (x + norm(branch) * post) * scale[0]; then of what lies behind x and the branch, as lib/ahead.wgsl has it: heads of q and k
//   normalised, weighted and turned, of v normalised; k and v become position pos + pos_offset of the cache, in slot
//   position % n_slots; then part s of n_split of attention: for each head, over its share of the history, top = max q.k_j,
//   total = sum e^(q.k_j - top),  o = sum e^(q.k_j - top) v_j
//
//   table    read    2 n_pair f32: cosines, sines           grid   n_kv_head * chunks * n_split
//   vectors  read    at their places, in vec4s: post, what heads of q and of k are multiplied with; scale
//                                                           bytes  the history once (a chunk), the rest for each workgroup
//   x        read    cols f32, then queries, keys, values   needs  head_dim % 8 == 0 and <= 512, cols <= 16 WG,
//   branch   read    as x                                          chunks = ceil(group / HEADS), rows 1,
//   a        read    rank x n_head x head_dim f32;                 29,400 bytes of workgroup memory;
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

//!include lib/attend_led.wgsl
//!include lib/put_new.wgsl
@group(0) @binding(9) var<storage, read_write> k_cache : array<vec4<u32>>;
@group(0) @binding(10) var<storage, read_write> v_cache : array<vec4<u32>>;

fn k_weight(i : u32) -> vec4<f32> {
    return vectors[p.k_weight_at + i];
}

// vec4 i of the keys, or past them of the values, before and after the join.
fn key_known(i : u32) -> vec4<f32> {
    return x[p.cols / 4u + p.n_head * head4() + i];
}

fn key_new(i : u32) -> vec4<f32> {
    return branch[p.cols / 4u + p.n_head * head4() + i];
}

// A thread's part of what is new, known or of the branch: both halves of the key, then of the value.
fn news(part : Part, lid : u32, of_branch : bool) -> Four {
    let at = part.kv_head * head4() + lid;
    let half = head4() / 2u;
    let value = select(at + p.n_kv_head * head4(), at, p.v_from_k == 1u);
    if (of_branch) {
        return Four(key_new(at), key_new(at + half), key_new(value), key_new(value + half));
    }
    return Four(key_known(at), key_known(at + half), key_known(value), key_known(value + half));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let group = flat_group(wid, num);
    let part = part_of(group);
    if (!part.exists) {
        return;
    }
    begin_share_z(part, lid);
    let early = ask_early(part, lid);
    var known = Four();
    var of_branch = Four();
    var n = New();
    let mine = has_new(part) && lid < head4() / 2u;
    if (mine) {
        known = news(part, lid, false);
        of_branch = news(part, lid, true);
        n.w = key_weights(lid);
    }
    join_stream(lid, group == 0u);
    put_led_queries(part, early, lid);
    if (mine) {
        n.key_a = known_and_new(known.a, of_branch.a);
        n.key_b = known_and_new(known.b, of_branch.b);
        n.value_a = known_and_new(known.c, of_branch.c);
        n.value_b = known_and_new(known.d, of_branch.d);
    }
    put_heads(part, n, lid);
    attend_share(part, lid);
    put_share_z(part, lid);
}
