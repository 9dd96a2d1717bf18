// no_share_z - the product that reads a share has no adapters.
fn share4() -> u32 {
    return head4() + 1u;
}

fn answered(i : u32, o : vec4<f32>) {
}

fn begin_share_z(part : Part, lid : u32) {
}

fn put_share_z(part : Part, lid : u32) {
}
