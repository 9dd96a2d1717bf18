// q8_a - a block of 16: one vec4 of signed bytes; two f32, s and o, at w_scales(). value = s q + o

//!include lib/base.wgsl

fn eight(i : u32) -> Eight {
    let m = bitcast<vec2<f32>>(two_words(w_scales() + 2u * (i >> 1u)));
    let q = two_words(2u * i);
    return Eight(m.x * signed4(q.x) + m.y, m.x * signed4(q.y) + m.y);
}

fn sixteen(i : u32) -> Sixteen {
    let m = bitcast<vec2<f32>>(two_words(p.scales + 2u * (i >> 1u)));
    return scaled16(w_at(i >> 1u) ^ vec4<u32>(0x80808080u), 128.0, m.x, m.y);
}

// ---- few rows: a lane's unit is a block: one vec4 and two f32 ----

// sum (s q + o) x = s sum q x + o sum x
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

// ---- subgroup matrices: the bits of sixteen weights, and halves of them ----

struct Raw {
    q : vec4<u32>,
    m : vec2<u32>,
}

fn raw_at(i : u32) -> Raw {
    let at = w_scales() + 2u * (i >> 1u);
    return Raw(w_at(i >> 1u), vec2<u32>(word_at(at), word_at(at + 1u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let m = bitcast<vec2<f32>>(r.m);
    return half_bytes16(r.q, m.x, m.y);
}
