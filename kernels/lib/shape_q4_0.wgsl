// shape_q4_0 - a block of 32: one vec4, whose byte j holds q[j] and q[j + 16]; a half d at
// w_scales(). value = d (q - 8)

//!include lib/base.wgsl

fn eight(i : u32) -> Eight {
    let block = i >> 2u;
    let first = 4u * block + 2u * (i & 1u);
    let shift = 2u * (i & 2u);
    let d = half_at(w_scales(), block);
    let q = (two_words(first) >> vec2<u32>(shift)) & vec2<u32>(0x0f0f0f0fu);
    return Eight(d * bytes4(q.x, 8.0), d * bytes4(q.y, 8.0));
}

fn sixteen(i : u32) -> Sixteen {
    let q = (w_at(i >> 2u) >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu);
    return scaled16(q, 8.0, half_at(p.scales, i >> 2u), 0.0);
}
