// raw_q6_k - the shape of shape_q6_k as halves, see lib/raw.
//!include lib/raw.wgsl
struct Raw {
    low : vec4<u32>,
    high : vec4<u32>,
    scales : u32,
    d : u32,
}

fn raw_at(i : u32) -> Raw {
    let block = i >> 5u;
    let half = (i >> 4u) & 1u;
    let side = (i >> 1u) & 1u;
    return Raw(w_at(12u * block + 4u * half + 2u * ((i >> 2u) & 1u) + side),
               w_at(12u * block + 8u + 2u * half + side), word_at(w_scales() + 4u * block + ((i >> 3u) & 3u)),
               word_at(w_d() + (block >> 1u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let quarter = (i >> 2u) & 3u;
    let low = (r.low >> vec4<u32>(2u * (quarter & 2u))) & vec4<u32>(0x0f0f0f0fu);
    let high = (r.high >> vec4<u32>(2u * quarter)) & vec4<u32>(0x03030303u);
    let byte = (r.scales >> (8u * ((i >> 1u) & 3u))) & 0xffu;
    let s = half_of(r.d, i >> 5u) * (f32(byte ^ 0x80u) - 128.0);
    return codes16(low | (high << vec4<u32>(4u)), s, -32.0 * s);
}
