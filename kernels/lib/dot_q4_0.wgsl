// dot_q4_0 - a lane's unit is a block: one vec4 and a half.
//!include lib/shape_q4_0.wgsl
//!include lib/nibbles.wgsl
//!include lib/acts32.wgsl

fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let i = at + u;
    let q = w_at(i);
    return half_at(w_scales(), i) *
           (dot16(low_nibbles(q), 8.0, v.a) + dot16(high_nibbles(q), 8.0, v.b));
}
