// raw_affine - (d sc, dmin mn) of one group of eight out of the header that Q4_K and Q5_K share, see lib/affine_group.
fn affine_of(head : vec4<u32>, group : u32) -> vec2<f32> {
    let s = head.yzw >> vec3<u32>(8u * (group & 3u));
    let low = s.xy & vec2<u32>(63u);
    let high = (vec2<u32>(s.z, s.z >> 4u) & vec2<u32>(15u)) | ((s.xy >> vec2<u32>(2u)) & vec2<u32>(48u));
    return unpack2x16float(head.x) * vec2<f32>(select(low, high, group > 3u));
}
