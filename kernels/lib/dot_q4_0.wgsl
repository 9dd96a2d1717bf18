// dot_q4_0 - a lane's unit is a block: one vec4 and a half.
//!include lib/shape_q4_0.wgsl
//!include lib/nibbles.wgsl

const UNIT : u32 = 32u;
alias Acts = Acts32;

fn acts(base : u32, u : u32) -> Acts {
    return Acts(run_at(base, 2u * u), run_at(base, 2u * u + 1u));
}

fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let i = at + u;
    let q = w_at(i);
    return half_at(w_scales(), i) *
           (dot16(low_nibbles(q), 8.0, v.a) + dot16(high_nibbles(q), 8.0, v.b));
}
