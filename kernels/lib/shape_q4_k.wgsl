// shape_q4_k - a block of 256: nine vec4, a header and one of nibbles for each group of 32, whose first sixteen weights are the low ones:
// see turn_q4_k. value = d sc q - dmin mn

//!include lib/base.wgsl

fn affine_group(head : vec4<u32>, g : u32) -> vec2<f32> {
    // Six bits of the groups 0 to 3 lie together; of the others four lie in the last word, two above the six.
    let upper = g > 3u;
    let shift = 8u * (g & 3u);
    let four = select(0u, 0x0fu, upper);
    let rest = select(0x3fu, 0x30u, upper);
    let past = vec2<u32>(shift + select(0u, 2u, upper));
    let two = ((head.ww >> vec2<u32>(shift, shift + 4u)) & vec2<u32>(four)) | ((head.yz >> past) & vec2<u32>(rest));
    return unpack2x16float(head.x) * vec2<f32>(two);
}

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
