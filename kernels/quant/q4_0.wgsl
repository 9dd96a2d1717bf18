// q4_0 - a block of 32: one vec4, whose byte j has q[j] and q[j + 16]; a half d at w_scales().
// value = d (q - 8)

//!include lib/base.wgsl

fn eight(i : u32) -> Eight {
    let block = i >> 2u;
    let first = 4u * block + 2u * (i & 1u);
    let shift = 2u * (i & 2u);
    let d = half_at(w_scales(), block);
    let q = (two_words(first) >> vec2<u32>(shift)) & vec2<u32>(0x0f0f0f0fu);
    return Eight(d * bytes4(q.x, 8.0), d * bytes4(q.y, 8.0));
}

fn sixteen(i : u32) -> Sixteen {
    let q = (w_at(i >> 2u) >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu);
    return scaled16(q, 8.0, half_at(p.scales, i >> 2u), 0.0);
}

// ---- few rows: a lane's unit is a block: one vec4 and a half ----

const UNIT : u32 = 32u;
alias Acts = Acts32;

// Two runs side by side.
fn acts(base : u32, u : u32) -> Acts {
    return Acts(run_at(base, 2u * u), run_at(base, 2u * u + 1u));
}

fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let i = at + u;
    let q = w_at(i);
    return half_at(w_scales(), i) *
           (dot16(low_nibbles(q), 8.0, v.a) + dot16_high(q, 8.0, v.b));
}

// ---- subgroup matrices: the bits of sixteen weights, and halves of them ----

struct Raw {
    q : vec4<u32>,
    d : u32,
}

fn raw_at(i : u32) -> Raw {
    return Raw(w_at(i >> 2u), word_at(w_scales() + (i >> 3u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let s = half_of(r.d, i >> 2u);
    return half_codes16((r.q >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu), s, -8.0 * s);
}
