// dot_q8_0 - a lane's unit is half a block: one vec4; two lanes share the scale.
//!include lib/shape_q8_0.wgsl

const CODES : bool = true; // products take activations in runs, see lib/held
const UNIT : u32 = 16u;
alias Acts = Run;

fn acts(base : u32, u : u32) -> Acts {
    return run_at(base, u);
}

fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let i = at + u;
    return half_at(w_scales(), i >> 1u) * dot16_signed(w_at(i), v);
}
