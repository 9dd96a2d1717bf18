// rng - the numbers of src/base/rng.h, bit for bit. Needs lib/u64.wgsl.
fn rng_mix(seed : vec2<u32>) -> vec2<u32> {
    var z = seed;
    z = u64_mul(z ^ u64_shift_right(z, 30u), vec2<u32>(0x1ce4e5b9u, 0xbf58476du));
    z = u64_mul(z ^ u64_shift_right(z, 27u), vec2<u32>(0x133111ebu, 0x94d049bbu));
    return z ^ u64_shift_right(z, 31u);
}

// The 24 bits of rng_unit(rng_at(seed, i)): u = bits / 2^24.
fn rng_bits(seed : vec2<u32>, i : u32) -> u32 {
    let golden = vec2<u32>(0x7f4a7c15u, 0x9e3779b9u);
    let number = u64_add(vec2<u32>(i, 0u), vec2<u32>(1u, 0u));
    return rng_mix(u64_add(rng_mix(u64_add(seed, golden)), u64_mul(number, golden))).y >> 8u;
}
