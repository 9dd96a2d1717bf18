// shape_f16 - eight halves: one vec4.

//!include lib/base.wgsl

fn eight(i : u32) -> Eight {
    let v = w_at(i);
    return Eight(vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)),
                 vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)));
}

fn sixteen(i : u32) -> Sixteen {
    return two_eights(eight(i), eight(i + 1u));
}
