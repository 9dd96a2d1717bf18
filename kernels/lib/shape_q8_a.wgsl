// shape_q8_a - a block of 16: one vec4 of signed bytes; two f32, s and o, at w_scales().
// value = s q + o

//!include lib/base.wgsl

fn eight(i : u32) -> Eight {
    let m = bitcast<vec2<f32>>(two_words(w_scales() + 2u * (i >> 1u)));
    let q = two_words(2u * i);
    return Eight(m.x * signed4(q.x) + m.y, m.x * signed4(q.y) + m.y);
}

fn sixteen(i : u32) -> Sixteen {
    let m = bitcast<vec2<f32>>(two_words(p.scales + 2u * (i >> 1u)));
    return scaled16(w_at(i >> 1u) ^ vec4<u32>(0x80808080u), 128.0, m.x, m.y);
}
