// shape_q4_k - a block of 256: nine vec4, a header and one of nibbles for each group of 32, whose first sixteen weights are the low ones:
// see turn_q4_k. value = d sc q - dmin mn
//!include lib/words.wgsl
//!include lib/bytes.wgsl
//!include lib/affine_group.wgsl

fn eight(i : u32) -> Eight {
    let head = 9u * (i >> 5u);
    let group = (i >> 2u) & 7u;
    let first = 4u * (head + 1u + group) + 2u * (i & 1u);
    let m = affine_group(w_at(head), group);
    let q = (two_words(first) >> vec2<u32>(2u * (i & 2u))) & vec2<u32>(0x0f0f0f0fu);
    return Eight(m.x * bytes4(q.x, 0.0) - m.y, m.x * bytes4(q.y, 0.0) - m.y);
}

fn sixteen(i : u32) -> Sixteen {
    let head = 9u * (i >> 5u);
    let group = (i >> 2u) & 7u;
    let m = affine_group(w_at(head), group);
    let q = w_at(head + 1u + group) >> vec4<u32>(2u * (i & 2u));
    return scaled16(q & vec4<u32>(0x0f0f0f0fu), 0.0, m.x, -m.y);
}
