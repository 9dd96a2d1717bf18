// q8_0 - a block of 32: two vec4 of signed bytes; a half d at w_scales(). value = d q

//!include lib/base.wgsl

fn eight(i : u32) -> Eight {
    let d = half_at(w_scales(), i >> 2u);
    let q = two_words(2u * i);
    return Eight(d * signed4(q.x), d * signed4(q.y));
}

fn sixteen(i : u32) -> Sixteen {
    return scaled16(w_at(i >> 1u) ^ vec4<u32>(0x80808080u), 128.0, half_at(p.scales, i >> 2u), 0.0);
}

// ---- few rows: a lane's unit is half a block: one vec4; two lanes share the scale ----

const UNIT : u32 = 16u;
alias Acts = Run;

fn acts(base : u32, u : u32) -> Acts {
    return run_at(base, u);
}

fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let i = at + u;
    return half_at(w_scales(), i >> 1u) * dot16_signed(w_at(i), v);
}

// ---- subgroup matrices: the bits of sixteen weights, and halves of them ----

struct Raw {
    q : vec4<u32>,
    d : u32,
}

fn raw_at(i : u32) -> Raw {
    return Raw(w_at(i >> 1u), word_at(w_scales() + (i >> 3u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    return half_bytes16(r.q, half_of(r.d, i >> 2u), 0.0);
}
