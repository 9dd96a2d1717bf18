// shape_q6_k - a block of 256: twelve vec4, 128 bytes ql and 64 bytes qh, drawn in
// src/quant/q6_k.c; then 16 signed bytes at w_scales() and a half at w_d(). value = d sc (q - 32)
//!include lib/words.wgsl
//!include lib/bytes.wgsl

fn q6_scale(block : u32, group : u32) -> f32 {
    let four = word_at(w_scales() + 4u * block + (group >> 2u));
    let byte = (four >> (8u * (group & 3u))) & 0xffu;
    return half_at(w_d(), block) * (f32(byte ^ 0x80u) - 128.0);
}

fn eight(i : u32) -> Eight {
    let block = i >> 5u;
    let half = (i >> 4u) & 1u;
    let quarter = (i >> 2u) & 3u;
    let l = 2u * (i & 3u);
    let ql = 48u * block + 16u * half + 8u * (quarter & 1u) + l;
    let qh = 48u * block + 32u + 8u * half + l;
    let low = 2u * (quarter & 2u);
    let high = 2u * quarter;
    let s = q6_scale(block, (i >> 1u) & 15u);
    let four = (two_words(ql) >> vec2<u32>(low)) & vec2<u32>(0x0f0f0f0fu);
    let two = (two_words(qh) >> vec2<u32>(high)) & vec2<u32>(0x03030303u);
    let q = four | (two << vec2<u32>(4u));
    return Eight(s * bytes4(q.x, 32.0), s * bytes4(q.y, 32.0));
}

fn sixteen(i : u32) -> Sixteen {
    let block = i >> 5u;
    let half = (i >> 4u) & 1u;
    let quarter = (i >> 2u) & 3u;
    let side = (i >> 1u) & 1u;
    let low = w_at(12u * block + 4u * half + 2u * (quarter & 1u) + side) >> vec4<u32>(2u * (quarter & 2u));
    let high = w_at(12u * block + 8u + 2u * half + side) >> vec4<u32>(2u * quarter);
    let q = (low & vec4<u32>(0x0f0f0f0fu)) | ((high & vec4<u32>(0x03030303u)) << vec4<u32>(4u));
    return scaled16(q, 32.0, q6_scale(block, (i >> 1u) & 15u), 0.0);
}
