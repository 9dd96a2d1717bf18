// affine - the header that Q4_K and Q5_K share: d, dmin, and eight pairs (sc, mn) of six bits in
// twelve bytes; drawn in src/quant/affine.h. In Q5_K the groups 2p and 2p + 1 are the nibbles of the same
// bytes, so their numbers come together (of one group alone: lib/affine_group): vec4(d sc, d sc', dmin mn, dmin mn').
fn affine_pair(head : vec4<u32>, p : u32) -> vec4<f32> {
    let s = head.yzw >> vec3<u32>(16u * (p & 1u));
    let low = s.xy & vec2<u32>(0x3f3fu);
    let high = (vec2<u32>(s.z, s.z >> 4u) & vec2<u32>(0x0f0fu)) |
               ((s.xy >> vec2<u32>(2u)) & vec2<u32>(0x3030u));
    let two = select(low, high, p > 1u);
    let d = unpack2x16float(head.x);
    return d.xxyy * vec4<f32>(vec4<u32>(two.x & 0xffu, two.x >> 8u, two.y & 0xffu, two.y >> 8u));
}

// The same in fewer instructions where p is that of many headers in turn, as in the dot products of a lane: what is chosen by it
// is chosen once.
fn affine_lane(head : vec4<u32>, p : u32) -> vec4<f32> {
    // Six bits of the pairs 0 and 1 lie together; of 2 and 3 four lie in the last word, two above the others' six.
    let upper = p > 1u;
    let shift = 16u * (p & 1u);
    let four = select(0u, 0x0f0fu, upper);
    let rest = select(0x3f3fu, 0x3030u, upper);
    let past = vec2<u32>(shift + select(0u, 2u, upper));
    let two = ((head.ww >> vec2<u32>(shift, shift + 4u)) & vec2<u32>(four)) | ((head.yz >> past) & vec2<u32>(rest));
    let d = unpack2x16float(head.x);
    return d.xxyy * vec4<f32>(vec4<u32>(two.x & 0xffu, two.x >> 8u, two.y & 0xffu, two.y >> 8u));
}
