// affine_group - (d sc, dmin mn) of group g out of the header that Q4_K and Q5_K share, drawn in src/quant/affine.h. Where g is that of
// many headers in turn, as in the dot products of a lane, what is chosen by it is chosen once; lib/raw_affine is for groups that change.
fn affine_group(head : vec4<u32>, g : u32) -> vec2<f32> {
    // Six bits of the groups 0 to 3 lie together; of the others four lie in the last word, two above the six.
    let upper = g > 3u;
    let shift = 8u * (g & 3u);
    let four = select(0u, 0x0fu, upper);
    let rest = select(0x3fu, 0x30u, upper);
    let past = vec2<u32>(shift + select(0u, 2u, upper));
    let two = ((head.ww >> vec2<u32>(shift, shift + 4u)) & vec2<u32>(four)) | ((head.yz >> past) & vec2<u32>(rest));
    return unpack2x16float(head.x) * vec2<f32>(two);
}
