// raw_q8_0 - the shape of shape_q8_0 as halves, see lib/raw.

//!include lib/base.wgsl

struct Raw {
    q : vec4<u32>,
    d : u32,
}

fn raw_at(i : u32) -> Raw {
    return Raw(w_at(i >> 1u), word_at(w_scales() + (i >> 3u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    return half_bytes16(r.q, half_of(r.d, i >> 2u), 0.0);
}
