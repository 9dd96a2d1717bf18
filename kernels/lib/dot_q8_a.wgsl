// dot_q8_a - a lane's unit is a block: one vec4 and two f32. sum (s q + o) x = s sum q x + o sum x
//!include lib/shape_q8_a.wgsl
//!include lib/acts.wgsl

const UNIT : u32 = 16u;
struct Acts {
    a : mat4x4<f32>,
    sum : f32,
}

fn acts(base : u32, u : u32) -> Acts {
    let a = acts16(base + 4u * u);
    return Acts(a, sum16(a));
}

fn unit_dot(i : u32, v : Acts) -> f32 {
    let m = bitcast<vec2<f32>>(two_words(w_scales() + 2u * i));
    return m.x * dot16_signed(w_at(i), v.a) + m.y * v.sum;
}
