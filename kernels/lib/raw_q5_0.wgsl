// raw_q5_0 - the shape of shape_q5_0 as halves, see lib/raw.

//!include lib/base.wgsl

struct Raw {
    q : vec4<u32>,
    high : u32,
    d : u32,
}

fn raw_at(i : u32) -> Raw {
    return Raw(w_at(i >> 2u), word_at(w_high() + (i >> 2u)), word_at(w_scales() + (i >> 3u)));
}

// The lowest four bits of v, each as bit 4 of a byte: the product has v four times, 7 bits apart.
fn fifth_bits(v : u32) -> u32 {
    return ((v & 15u) * 0x02040810u) & 0x10101010u;
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let s = half_of(r.d, i >> 2u);
    let high = r.high >> (8u * (i & 2u));
    let low = (r.q >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu);
    let bits = vec4<u32>(fifth_bits(high), fifth_bits(high >> 4u), fifth_bits(high >> 8u), fifth_bits(high >> 12u));
    return half_codes16(low | bits, s, -16.0 * s);
}
