// raw_q5_k - the shape of shape_q5_k as halves, see lib/raw.
//!include lib/base.wgsl
//!include lib/raw_affine.wgsl

struct Raw {
    head : vec4<u32>,
    high : vec4<u32>,
    q : vec4<u32>,
}

fn raw_at(i : u32) -> Raw {
    let head = 11u * (i >> 5u);
    let side = (i >> 1u) & 1u;
    return Raw(w_at(head), w_at(head + 1u + side), w_at(head + 3u + 2u * ((i >> 3u) & 3u) + side));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let group = (i >> 2u) & 7u;
    let m = affine_of(r.head, group);
    let low = (r.q >> vec4<u32>(4u * (group & 1u))) & vec4<u32>(0x0f0f0f0fu);
    let bit = (r.high >> vec4<u32>(group)) & vec4<u32>(0x01010101u);
    return half_codes16(low | (bit << vec4<u32>(4u)), m.x, -m.y);
}
