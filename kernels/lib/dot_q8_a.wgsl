// dot_q8_a - a lane's unit is a block: one vec4 and two f32. sum (s q + o) x = s sum q x + o sum x
//!include lib/shape_q8_a.wgsl

const CODES : bool = true; // products take activations in runs, see lib/held
const UNIT : u32 = 16u;
alias Acts = Run;

fn acts(base : u32, u : u32) -> Acts {
    return run_at(base, u);
}

fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let i = at + u;
    let m = bitcast<vec2<f32>>(two_words(w_scales() + 2u * i));
    return m.x * dot16_signed(w_at(i), v) + m.y * v.sum;
}
