// attn_decode_single - of one row: its heads of q and k normalised, weighted and rotated, of v
//   normalised; k and v become position pos + pos_offset of the cache, in slot position % n_slots;
//   then attention, for each head, over all of its history: s = sum e^(q.k_j) v_j / sum e^(q.k_j),
//   ready
//
//   table    read    2 n_pair f32: cosines, sines
//   vectors  read    weights of the norms of q and k, at
//                    their places, in vec4s
//   q        read    n_head x head_dim f32
//   k        read    n_kv_head x head_dim f32
//   v        read    as k; unread when v_from_k
//   k_cache  update  n_slots x n_kv_head x head_dim
//   v_cache  update  as k_cache
//   s        write   n_head x head_dim, ready
//   grid   n_head
//   bytes  the history for each head, q once
//   needs  head_dim % 16 == 0 and <= 512, rows 1, n_split 1, HEADS 1, 30,100 bytes of workgroup
//          memory (WG 256); KV_F16: a cache of halves
//
// As attn_decode, while histories are short: a workgroup has a head to itself, so no splits are
// merged.
// Reference: the nodes of rule attend_heads, in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here;
// KV_F16: one rounding to half.

//!axis acts f32 int8
//!axis split whole
//!axis cache written
//!include lib/attn_decode.wgsl
//!include lib/acts.wgsl
//!bind s update array<vec4<u32>>

fn put_four(part : Part, head : u32, i : u32, o : vec4<f32>) {
    queries[i] = o; // the queries are not read any more
}

fn put_end(part : Part, head : u32, top : f32, total : f32) {
    some[0] = total;
}

fn before_share(part : Part, lid : u32) {
}

//!if acts == f32
// The result of a head is complete.
fn after_share(part : Part, lid : u32) {
    if (lid < head4()) {
        let runs = p.n_head * head4() / 4u;
        let at = (part.row_q * head4() + lid) / 4u;
        s[at + (lid & 3u) * runs] = bitcast<vec4<u32>>(queries[lid] / some[0]);
    }
}
//!else
// The result of a head is complete. Four threads make a run ready, each four of its columns, at the
// places of put_run().
fn after_share(part : Part, lid : u32) {
    if (lid >= head4()) {
        return;
    }
    let f = 1.0 / some[0];
    let i = lid & ~3u;
    let run =
        Sixteen(f * queries[i], f * queries[i + 1u], f * queries[i + 2u], f * queries[i + 3u]);
    let most = largest_of(run.a, run.b, run.c, run.d);
    let d = transposed(planes_of(f * queries[lid], inverse_of(most)));
    let runs = p.n_head * head4() / 4u;
    let at = (part.row_q * head4() + i) / 4u;
    let quarter = lid & 3u;
    s[at][quarter] = d.high;
    s[at + runs][quarter] = d.middle;
    s[at + 2u * runs][quarter] = d.low;
    if (quarter == 0u) {
        s[at + 3u * runs] = scale_and_sum(most, run.a, run.b, run.c, run.d);
    }
}
//!end
