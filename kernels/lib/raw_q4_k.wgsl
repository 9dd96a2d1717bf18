// raw_q4_k - the shape of shape_q4_k as halves, see lib/raw.
//!include lib/base.wgsl
//!include lib/raw_affine.wgsl

struct Raw {
    head : vec4<u32>,
    q : vec4<u32>,
}

fn raw_at(i : u32) -> Raw {
    let head = 9u * (i >> 5u);
    return Raw(w_at(head), w_at(head + 1u + ((i >> 2u) & 7u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let m = affine_of(r.head, (i >> 2u) & 7u);
    let q = (r.q >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu);
    return half_codes16(q, m.x, -m.y);
}
