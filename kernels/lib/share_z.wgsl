// share_z - what comes after a share's attention where the product that reads it has adapters: the share's part of z = A o. Needs lib/attend, p
// with rank (a multiple of 8, 0 without LORA), and the buffer a.
//!include lib/head_z.wgsl
//!include lib/put_partial.wgsl
override LORA : u32 = 0u; // 1: the product after it has adapters; then HEADS is 1

fn share4() -> u32 {
    return head4() + 1u + p.rank / 4u;
}

fn put_four(part : Part, head : u32, i : u32, o : vec4<f32>) {
    partial[partial_at(part, head) + i] = o;
    if (HEADS == 1u) {
        queries[i] = o; // nobody asks them any more
    }
}

fn o_four(i : u32) -> vec4<f32> {
    return queries[i];
}

var<private> z_to : u32; // where the share's part of z begins in partial

fn put_z(k : u32, z : f32) {
    partial[z_to + k / 4u][k % 4u] = z;
}

// Before attend_share().
fn before_share(part : Part, lid : u32) {
    if (LORA == 1u) {
        begin_z(part.row_q * head4(), head4(), p.n_head * head4(), lid);
    }
}

// After it: what the next product's adapters make of the share's answer.
fn after_share(part : Part, lid : u32) {
    if (LORA == 1u && part.lo < part.hi) {
        z_to = partial_at(part, 0u) + head4() + 1u;
        make_z(part.row_q * head4(), head4(), p.n_head * head4(), lid);
    }
}
