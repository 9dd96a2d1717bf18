// attend_new - the kernels attend, attend_alone and attend_lora, but for the last buffers and what becomes of a share: before_share() and
// after_share(), and what lib/attention_split needs for it.
//!include lib/attend.wgsl
//!include lib/put_new.wgsl
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
    q_weight_at : u32,
    k_weight_at : u32,
    v_from_k : u32, // 1: values are made of the keys as they come
    eps : f32,
    rank : u32, // with lib/share_z: rows of A
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(2) var<storage, read> table : array<f32>;
@group(0) @binding(3) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> q : array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> k : array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> v : array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> k_cache : array<vec4<u32>>;
@group(0) @binding(8) var<storage, read_write> v_cache : array<vec4<u32>>;
fn q_weight(i : u32) -> vec4<f32> {
    return vectors[p.q_weight_at + i];
}

fn k_weight(i : u32) -> vec4<f32> {
    return vectors[p.k_weight_at + i];
}

fn q_four(i : u32) -> vec4<f32> {
    return q[i];
}

fn raw_key(i : u32) -> vec4<f32> {
    return k[i];
}

fn raw_value(i : u32) -> vec4<f32> {
    if (p.v_from_k == 1u) {
        return k[i];
    }
    return v[i];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let part = part_of(flat_group(wid, num));
    if (!part.exists) {
        return;
    }
    before_share(part, lid);
    put_queries(part, lid);
    var n = New();
    if (has_new(part) && lid < head4() / 2u) {
        n = new_four(part, lid);
    }
    put_heads(part, n, lid);
    attend_share(part, lid);
    after_share(part, lid);
}
