// key - logits as integers that compare alike: a larger logit has a larger key, equal logits equal keys
// (-0 is 0). Not-a-number is 0. What is below FIRST_KEY, minus infinity and not-a-number, is forbidden.
const FIRST_KEY : u32 = 0x00800000u;

fn key_of(z : f32) -> u32 {
    let bits = bitcast<u32>(z);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0u;
    }
    if ((bits & 0x80000000u) == 0u || bits == 0x80000000u) {
        return bits | 0x80000000u;
    }
    return ~bits;
}

fn value_of(key : u32) -> f32 {
    return bitcast<f32>(select(~key, key ^ 0x80000000u, (key & 0x80000000u) != 0u));
}
