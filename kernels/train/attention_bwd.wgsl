// attention_bwd - what the kernels of attention's gradient share: a run of query rows [row0, row0 +
// rows) against the keys [key0, key0 + span), whose scores lie head by head, row by row. PACKED: a
// position sees none before its example's start; starts never fall.

//!include lib/base.wgsl

struct Params {
    rows : u32,
    row0 : u32,
    key0 : u32,
    span : u32,  // a multiple of 4
    n_key : u32, // positions that there are
    n_head : u32,
    n_kv_head : u32,
    head_dim : u32,
    window : u32, // 0: all
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind starts read array<u32>

override PACKED : u32 = 0u;

// A vector of head h of row t, and of the kv head that it reads, of position j.
fn query_at(t : u32, h : u32) -> u32 {
    return (t * p.n_head + h) * (p.head_dim / 4u);
}

fn key_at(j : u32, kv_head : u32) -> u32 {
    return (j * p.n_kv_head + kv_head) * (p.head_dim / 4u);
}

fn kv_head_of(h : u32) -> u32 {
    return h / (p.n_head / p.n_kv_head);
}

fn first_key(pos : u32) -> u32 {
    let first = first_seen(pos, p.window);
    if (PACKED == 1u) {
        return max(first, starts[pos]);
    }
    return first;
}

// Does any of so many rows from row0 + m see any of so many keys from key0 + j?
fn meet(m : u32, rows : u32, j : u32, keys : u32) -> bool {
    let last = p.row0 + min(m + rows - 1u, p.rows - 1u);
    return p.key0 + j <= last && p.key0 + j + keys - 1u >= first_key(p.row0 + m);
}
