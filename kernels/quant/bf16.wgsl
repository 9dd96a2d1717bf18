// bf16 - eight weights are one vec4. A weight is the upper half of an f32.

//!include lib/base.wgsl
//!include quant/floats.wgsl

fn eight(i : u32) -> Eight {
    let v = w_at(i);
    let even = bitcast<vec4<f32>>(v << vec4<u32>(16u));
    let odd = bitcast<vec4<f32>>(v & vec4<u32>(0xffff0000u));
    return Eight(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w));
}

// ---- subgroup matrices: the bits of sixteen weights, and halves of them ----

struct Raw {
    a : vec4<u32>,
    b : vec4<u32>,
}

fn raw_at(i : u32) -> Raw {
    return Raw(w_at(i), w_at(i + 1u));
}

fn two_halves(v : u32) -> u32 {
    return pack2x16float(bitcast<vec2<f32>>(vec2<u32>(v << 16u, v & 0xffff0000u)));
}

fn four_twos(v : vec4<u32>) -> vec4<u32> {
    return vec4<u32>(two_halves(v.x), two_halves(v.y), two_halves(v.z), two_halves(v.w));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    return Halves(four_twos(r.a), four_twos(r.b));
}
