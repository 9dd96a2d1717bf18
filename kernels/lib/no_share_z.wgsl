// no_share_z - the product that reads a share has no adapters.
//!include lib/put_partial.wgsl

fn share4() -> u32 {
    return head4() + 1u;
}

fn put_four(part : Part, head : u32, i : u32, o : vec4<f32>) {
    partial[partial_at(part, head) + i] = o;
}

fn before_share(part : Part, lid : u32) {
}

fn after_share(part : Part, lid : u32) {
}
