// f16 - eight weights are one vec4 of halves.

//!include lib/base.wgsl
//!include quant/floats.wgsl

fn eight(i : u32) -> Eight {
    let v = w_at(i);
    return Eight(vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)),
                 vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)));
}

// ---- subgroup matrices: the bits of sixteen weights, and halves of them ----

struct Raw {
    a : vec4<u32>,
    b : vec4<u32>,
}

fn raw_at(i : u32) -> Raw {
    return Raw(w_at(i), w_at(i + 1u));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    return Halves(r.a, r.b);
}
