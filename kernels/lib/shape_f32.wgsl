// shape_f32 - eight f32: two vec4.

//!include lib/base.wgsl

fn eight(i : u32) -> Eight {
    return Eight(bitcast<vec4<f32>>(w_at(2u * i)), bitcast<vec4<f32>>(w_at(2u * i + 1u)));
}

fn sixteen(i : u32) -> Sixteen {
    return two_eights(eight(i), eight(i + 1u));
}
