// shape_q5_0 - as Q4_0, and the fifth bit of q[j] is bit j of the block's word at w_high().
// value = d (q - 16)

//!include lib/base.wgsl

// The lowest four bits of v, each as bit 4 of a byte: the product has v four times, 7 bits apart.
fn fifth_bits(v : u32) -> u32 {
    return ((v & 15u) * 0x02040810u) & 0x10101010u;
}

fn eight(i : u32) -> Eight {
    let block = i >> 2u;
    let first = 4u * block + 2u * (i & 1u);
    let shift = 2u * (i & 2u);
    let high = word_at(w_high() + block) >> (8u * (i & 3u));
    let d = half_at(w_scales(), block);
    let q = ((two_words(first) >> vec2<u32>(shift)) & vec2<u32>(0x0f0f0f0fu)) |
            vec2<u32>(fifth_bits(high), fifth_bits(high >> 4u));
    return Eight(d * bytes4(q.x, 16.0), d * bytes4(q.y, 16.0));
}

fn sixteen(i : u32) -> Sixteen {
    let block = i >> 2u;
    let high = word_at(p.high + block) >> (8u * (i & 2u));
    let low = (w_at(block) >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu);
    let q = low | vec4<u32>(fifth_bits(high), fifth_bits(high >> 4u), fifth_bits(high >> 8u),
                            fifth_bits(high >> 12u));
    return scaled16(q, 16.0, half_at(p.scales, block), 0.0);
}
