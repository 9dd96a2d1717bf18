// raw_q6_k - the shape of shape_q6_k as halves, see lib/raw.
//!include lib/base.wgsl
//!include lib/upper16.wgsl

struct Raw {
    low : vec4<u32>,
    high : u32,
    scales : u32,
    d : u32,
}

fn raw_at(i : u32) -> Raw {
    let block = i >> 5u;
    return Raw(w_at(12u * block + ((i >> 2u) & 7u)), word_at(48u * block + 32u + ((i >> 1u) & 15u)),
               word_at(w_scales() + 4u * block + ((i >> 3u) & 3u)), word_at(w_d() + (block >> 1u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let low = (r.low >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu);
    let byte = (r.scales >> (8u * ((i >> 1u) & 3u))) & 0xffu;
    let s = half_of(r.d, i >> 5u) * (f32(byte ^ 0x80u) - 128.0);
    return half_codes16(low | upper16(r.high), s, -32.0 * s);
}
