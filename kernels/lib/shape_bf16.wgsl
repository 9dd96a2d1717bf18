// shape_bf16 - eight bf16: one vec4. The bits are the upper half of an f32.

//!include lib/base.wgsl

fn eight(i : u32) -> Eight {
    let v = w_at(i);
    let even = bitcast<vec4<f32>>(v << vec4<u32>(16u));
    let odd = bitcast<vec4<f32>>(v & vec4<u32>(0xffff0000u));
    return Eight(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w));
}

fn sixteen(i : u32) -> Sixteen {
    return two_eights(eight(i), eight(i + 1u));
}
