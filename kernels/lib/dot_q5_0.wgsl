// dot_q5_0 - a lane's unit is a block: one vec4, a word of fifth bits and a half.
//!include lib/shape_q5_0.wgsl
//!include lib/nibbles.wgsl
//!include lib/acts32.wgsl

// Sixteen fifth bits, four to a word.
fn fifth16(v : u32) -> vec4<u32> {
    return vec4<u32>(fifth_bits(v), fifth_bits(v >> 4u), fifth_bits(v >> 8u), fifth_bits(v >> 12u));
}

fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let i = at + u;
    let q = w_at(i);
    let high = word_at(w_high() + i);
    return half_at(w_scales(), i) * (dot16(low_nibbles(q) | fifth16(high), 16.0, v.a) +
                                   dot16(high_nibbles(q) | fifth16(high >> 16u), 16.0, v.b));
}
