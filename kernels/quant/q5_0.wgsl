// q5_0 - as q4_0, and the fifth bit of q[j] is bit j of the block's word at w_high().
// value = d (q - 16)

//!include lib/base.wgsl

// The lowest four bits of v, each as bit 4 of a byte: the product has v four times, 7 bits apart.
fn fifth_bits(v : u32) -> u32 {
    return ((v & 15u) * 0x02040810u) & 0x10101010u;
}

fn eight(i : u32) -> Eight {
    let block = i >> 2u;
    let first = 4u * block + 2u * (i & 1u);
    let shift = 2u * (i & 2u);
    let high = word_at(w_high() + block) >> (8u * (i & 3u));
    let d = half_at(w_scales(), block);
    let q = ((two_words(first) >> vec2<u32>(shift)) & vec2<u32>(0x0f0f0f0fu)) |
            vec2<u32>(fifth_bits(high), fifth_bits(high >> 4u));
    return Eight(d * bytes4(q.x, 16.0), d * bytes4(q.y, 16.0));
}

fn sixteen(i : u32) -> Sixteen {
    let block = i >> 2u;
    let high = word_at(p.high + block) >> (8u * (i & 2u));
    let low = (w_at(block) >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu);
    let q = low | vec4<u32>(fifth_bits(high), fifth_bits(high >> 4u), fifth_bits(high >> 8u),
                            fifth_bits(high >> 12u));
    return scaled16(q, 16.0, half_at(p.scales, block), 0.0);
}

// ---- few rows: a lane's unit is a block: one vec4, a word of fifth bits and a half ----

const UNIT : u32 = 32u;
alias Acts = Acts32;

// Two runs side by side.
fn acts(base : u32, u : u32) -> Acts {
    return Acts(run_at(base, 2u * u), run_at(base, 2u * u + 1u));
}

// Sixteen fifth bits, four to a word.
fn fifth16(v : u32) -> vec4<u32> {
    return vec4<u32>(fifth_bits(v), fifth_bits(v >> 4u), fifth_bits(v >> 8u), fifth_bits(v >> 12u));
}

fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let i = at + u;
    let q = w_at(i);
    let high = word_at(w_high() + i);
    return half_at(w_scales(), i) * (dot16(low_nibbles(q) | fifth16(high), 16.0, v.a) +
                                   dot16(high_nibbles(q) | fifth16(high >> 16u), 16.0, v.b));
}

// ---- subgroup matrices: the bits of sixteen weights, and halves of them ----

struct Raw {
    q : vec4<u32>,
    high : u32,
    d : u32,
}

fn raw_at(i : u32) -> Raw {
    return Raw(w_at(i >> 2u), word_at(w_high() + (i >> 2u)), word_at(w_scales() + (i >> 3u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let s = half_of(r.d, i >> 2u);
    let high = r.high >> (8u * (i & 2u));
    let low = (r.q >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu);
    let bits =
        vec4<u32>(fifth_bits(high), fifth_bits(high >> 4u), fifth_bits(high >> 8u),
                  fifth_bits(high >> 12u));
    return half_codes16(low | bits, s, -16.0 * s);
}
