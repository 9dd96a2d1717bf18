// shape_q6_k - a block of 256: twelve vec4, for each group of 32 one of nibbles, whose first sixteen weights are the low ones, and half a one of the
// two bits above them: see turn_q6_k; then 16 signed bytes at w_scales() and a half at w_d(). value = d sc (q - 32)
//!include lib/base.wgsl
//!include lib/upper16.wgsl

fn q6_scale(block : u32, group : u32) -> f32 {
    let four = word_at(w_scales() + 4u * block + (group >> 2u));
    let byte = (four >> (8u * (group & 3u))) & 0xffu;
    return half_at(w_d(), block) * (f32(byte ^ 0x80u) - 128.0);
}

// Half a run.
fn eight(i : u32) -> Eight {
    let block = 48u * (i >> 5u);
    let group = (i >> 2u) & 7u;
    let low = two_words(block + 4u * group + 2u * (i & 1u)) >> vec2<u32>(2u * (i & 2u));
    let high = upper16(word_at(block + 32u + ((i >> 1u) & 15u)));
    let q = (low & vec2<u32>(0x0f0f0f0fu)) | select(high.xy, high.zw, (i & 1u) == 1u);
    let s = q6_scale(i >> 5u, (i >> 1u) & 15u);
    return Eight(s * bytes4(q.x, 32.0), s * bytes4(q.y, 32.0));
}

fn sixteen(i : u32) -> Sixteen {
    let block = i >> 5u;
    let low = w_at(12u * block + ((i >> 2u) & 7u)) >> vec4<u32>(2u * (i & 2u));
    let high = upper16(word_at(48u * block + 32u + ((i >> 1u) & 15u)));
    return scaled16((low & vec4<u32>(0x0f0f0f0fu)) | high, 32.0, q6_scale(block, (i >> 1u) & 15u), 0.0);
}
