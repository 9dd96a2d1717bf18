// four - sixteen columns in registers.
struct Four {
    a : vec4<f32>,
    b : vec4<f32>,
    c : vec4<f32>,
    d : vec4<f32>,
}

fn times(u : Four, v : Four) -> Four {
    return Four(u.a * v.a, u.b * v.b, u.c * v.c, u.d * v.d);
}

// f (u + r v)
fn mixed(u : Four, v : Four, r : f32, f : f32) -> Four {
    return Four(f * (u.a + r * v.a), f * (u.b + r * v.b), f * (u.c + r * v.c), f * (u.d + r * v.d));
}

fn square(v : Four) -> f32 {
    return (dot(v.a, v.a) + dot(v.b, v.b)) + (dot(v.c, v.c) + dot(v.d, v.d));
}
