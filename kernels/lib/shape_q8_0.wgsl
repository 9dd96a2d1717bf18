// shape_q8_0 - a block of 32: two vec4 of signed bytes; a half d at w_scales(). value = d q

//!include lib/base.wgsl

fn eight(i : u32) -> Eight {
    let d = half_at(w_scales(), i >> 2u);
    let q = two_words(2u * i);
    return Eight(d * signed4(q.x), d * signed4(q.y));
}

fn sixteen(i : u32) -> Sixteen {
    return scaled16(w_at(i >> 1u) ^ vec4<u32>(0x80808080u), 128.0, half_at(p.scales, i >> 2u), 0.0);
}
