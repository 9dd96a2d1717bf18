// raw_q4_0 - the shape of shape_q4_0 as halves, see lib/raw.

//!include lib/base.wgsl

struct Raw {
    q : vec4<u32>,
    d : u32,
}

fn raw_at(i : u32) -> Raw {
    return Raw(w_at(i >> 2u), word_at(w_scales() + (i >> 3u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let s = half_of(r.d, i >> 2u);
    return half_codes16((r.q >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu), s, -8.0 * s);
}
