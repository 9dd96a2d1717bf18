// shape_q4_k - a block of 256: nine vec4, a header and 128 bytes of nibbles. Byte 32p + l holds
// weight l of the groups 2p (low) and 2p + 1 (high). value = d sc q - dmin mn
//!include lib/words.wgsl
//!include lib/bytes.wgsl
//!include lib/affine.wgsl

fn eight(i : u32) -> Eight {
    let head = 9u * (i >> 5u);
    let group = (i >> 2u) & 7u;
    let first = 4u * head + 4u + 8u * (group >> 1u) + 2u * (i & 3u);
    let shift = 4u * (group & 1u);
    let pair = affine_pair(w_at(head), group >> 1u);
    let m = select(pair.xz, pair.yw, (group & 1u) == 1u);
    let q = (two_words(first) >> vec2<u32>(shift)) & vec2<u32>(0x0f0f0f0fu);
    return Eight(m.x * bytes4(q.x, 0.0) - m.y, m.x * bytes4(q.y, 0.0) - m.y);
}

fn sixteen(i : u32) -> Sixteen {
    let head = 9u * (i >> 5u);
    let group = (i >> 2u) & 7u;
    let pair = affine_pair(w_at(head), group >> 1u);
    let m = select(pair.xz, pair.yw, (group & 1u) == 1u);
    let q = w_at(head + 1u + 2u * (group >> 1u) + ((i >> 1u) & 1u)) >> vec4<u32>(4u * (group & 1u));
    return scaled16(q & vec4<u32>(0x0f0f0f0fu), 0.0, m.x, -m.y);
}
