// dot_q6_k - a lane's unit is a group: one vec4 of nibbles, and half a vec4 of the two bits above them, of which its neighbour has the other half.
//!include lib/shape_q6_k.wgsl
//!include lib/nibbles.wgsl
//!include lib/acts32.wgsl

// Rows are whole blocks. What depends on u alone is the same for all rows of a team.
fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let row = at >> 3u;
    let block = u >> 3u;
    let group = u & 7u;
    let low = w_at(12u * row + (12u * block + group));
    let both = w_at(12u * row + (12u * block + 8u + (group >> 1u)));
    let high = select(both.xy, both.zw, (group & 1u) == 1u);
    let four = word_at(w_scales() + 4u * row + (4u * block + (group >> 1u)));
    let sc = (vec2<u32>(four) >> (vec2<u32>(16u * (group & 1u)) + vec2<u32>(0u, 8u))) & vec2<u32>(0xffu);
    let products = vec2<f32>(dot16(low_nibbles(low) | upper16(high.x), 32.0, v.a),
                             dot16(high_nibbles(low) | upper16(high.y), 32.0, v.b));
    return half_at(w_d(), row + block) * dot(vec2<f32>(sc ^ vec2<u32>(0x80u)) - 128.0, products);
}
