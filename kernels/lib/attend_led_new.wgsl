// attend_led_new - the kernel attend_led without add_over(): a tier chooses.
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
    before_share(part, lid);
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
    join_stream(lid, group == p.writer);
    put_led_queries(part, early, lid);
    if (mine) {
        n.key_a = known_and_new(known.a, of_branch.a);
        n.key_b = known_and_new(known.b, of_branch.b);
        n.value_a = known_and_new(known.c, of_branch.c);
        n.value_b = known_and_new(known.d, of_branch.d);
    }
    put_heads(part, n, lid);
    attend_share(part, lid);
    after_share(part, lid);
}
