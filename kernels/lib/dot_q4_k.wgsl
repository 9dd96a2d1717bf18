// dot_q4_k - a lane's unit is one vec4 of nibbles; eight lanes share a header.
//!include lib/shape_q4_k.wgsl
//!include lib/nibbles.wgsl
//!include lib/affine_acts.wgsl

fn unit_dot(i : u32, v : Acts) -> f32 {
    let head = 9u * (i >> 3u);
    let q = w_at(head + 1u + (i & 7u));
    let pair = affine_pair(w_at(head), (i >> 1u) & 3u);
    let products = vec2<f32>(dot16(low_nibbles(q), 0.0, v.a), dot16(high_nibbles(q), 0.0, v.b));
    return dot(pair.xy, products) - dot(pair.zw, vec2<f32>(v.a.sum, v.b.sum));
}
