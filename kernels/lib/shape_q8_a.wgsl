// shape_q8_a - a block of 16: one vec4 of signed bytes; two f32, s and o, at p.scales. value = s q + o
//!include lib/words.wgsl
//!include lib/bytes.wgsl

fn eight(i : u32) -> Eight {
    let at = p.scales + 2u * (i >> 1u);
    let s = bitcast<f32>(word_at(at));
    let o = bitcast<f32>(word_at(at + 1u));
    return Eight(s * signed4(word_at(2u * i)) + o, s * signed4(word_at(2u * i + 1u)) + o);
}
