// upper16 - two bits of sixteen weights out of a word, see turn_q6_k: those of weight 4c + b as bits 4 and 5 of byte b of word c.
fn upper16(bits : u32) -> vec4<u32> {
    return vec4<u32>(bits << 4u, bits << 2u, bits, bits >> 2u) & vec4<u32>(0x30303030u);
}
