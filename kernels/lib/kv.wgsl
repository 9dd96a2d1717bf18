// kv - what a word of the cache is: four f32, or with KV_F16 eight halves. The cache is bound as
// array<vec4<u32>>; four numbers at a time are number i of it, wherever they are.
override KV_F16 : u32 = 0u;

// Numbers 4i .. 4i + 3 of the cache, from word i >> KV_F16.
fn kv_four(word : vec4<u32>, i : u32) -> vec4<f32> {
    if (KV_F16 == 0u) {
        return bitcast<vec4<f32>>(word);
    }
    let h = select(word.xy, word.zw, (i & 1u) == 1u);
    return vec4<f32>(unpack2x16float(h.x), unpack2x16float(h.y));
}

// The bits of halves, rounded to nearest even, past 65504 the largest. pack2x16float may round
// either way and devices do; this is what the CPU does, so a cache has the same bits everywhere.
fn half_bits(v : vec4<f32>) -> vec4<u32> {
    let u = bitcast<vec4<u32>>(v);
    let size = u & vec4<u32>(0x7fffffffu);
    let odd = (size >> vec4<u32>(13u)) & vec4<u32>(1u);
    let normal = (size - vec4<u32>(0x38000000u) + vec4<u32>(0xfffu) + odd) >> vec4<u32>(13u);
    // Below 2^-14: adding 0.5 leaves the number in units of 2^-24 in the low bits.
    let tiny = bitcast<vec4<u32>>(bitcast<vec4<f32>>(size) + 0.5) - vec4<u32>(0x3f000000u);
    let h = select(min(normal, vec4<u32>(0x7bffu)), tiny, size < vec4<u32>(0x38800000u));
    return h | ((u >> vec4<u32>(16u)) & vec4<u32>(0x8000u));
}

fn kv_halves(a : vec4<f32>, b : vec4<f32>) -> vec4<u32> {
    let low = half_bits(vec4<f32>(a.xz, b.xz));
    return low | (half_bits(vec4<f32>(a.yw, b.yw)) << vec4<u32>(16u));
}
