// f32 - eight weights are two vec4.

//!include lib/base.wgsl
//!include quant/floats.wgsl

fn eight(i : u32) -> Eight {
    return Eight(bitcast<vec4<f32>>(w_at(2u * i)), bitcast<vec4<f32>>(w_at(2u * i + 1u)));
}
