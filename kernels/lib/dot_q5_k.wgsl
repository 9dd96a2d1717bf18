// dot_q5_k - a lane's unit is one vec4 of nibbles; four lanes share the fifth bits, eight a header.
//!include lib/shape_q5_k.wgsl
//!include lib/nibbles.wgsl
//!include lib/affine_acts.wgsl

// Bit g of every byte, as bit 4.
fn fifth16(high : vec4<u32>, g : u32) -> vec4<u32> {
    return ((high >> vec4<u32>(g)) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}

fn unit_dot(i : u32, v : Acts) -> f32 {
    let head = 11u * (i >> 3u);
    let g = i & 6u;
    let high = w_at(head + 1u + (i & 1u));
    let q = w_at(head + 3u + (i & 7u));
    let pair = affine_pair(w_at(head), g >> 1u);
    let products = vec2<f32>(dot16(low_nibbles(q) | fifth16(high, g), 0.0, v.a),
                             dot16(high_nibbles(q) | fifth16(high, g + 1u), 0.0, v.b));
    return dot(pair.xy, products) - dot(pair.zw, vec2<f32>(v.a.sum, v.b.sum));
}
