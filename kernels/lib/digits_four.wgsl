// digits_four - sixteen settled activations as floats again.
//!include lib/settled.wgsl
//!include lib/four.wgsl
fn digits4(word : u32) -> vec4<f32> {
    return vec4<f32>(unpack4xI8(word));
}

fn digits_to_four(s : Settled) -> Four {
    let scale = bitcast<f32>(s.d.x);
    return Four(scale * (65536.0 * digits4(s.a.x) + 256.0 * digits4(s.b.x) + digits4(s.c.x)),
                scale * (65536.0 * digits4(s.a.y) + 256.0 * digits4(s.b.y) + digits4(s.c.y)),
                scale * (65536.0 * digits4(s.a.z) + 256.0 * digits4(s.b.z) + digits4(s.c.z)),
                scale * (65536.0 * digits4(s.a.w) + 256.0 * digits4(s.b.w) + digits4(s.c.w)));
}
