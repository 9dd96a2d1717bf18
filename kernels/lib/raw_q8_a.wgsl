// raw_q8_a - the shape of shape_q8_a as halves, see lib/raw.

//!include lib/base.wgsl

struct Raw {
    q : vec4<u32>,
    m : vec2<u32>,
}

fn raw_at(i : u32) -> Raw {
    let at = w_scales() + 2u * (i >> 1u);
    return Raw(w_at(i >> 1u), vec2<u32>(word_at(at), word_at(at + 1u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let m = bitcast<vec2<f32>>(r.m);
    return half_bytes16(r.q, m.x, m.y);
}
