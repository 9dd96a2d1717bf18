// floats - what f32, f16 and bf16 have in common. A lane's unit is eight weights, without a scale.
//!include lib/base.wgsl

fn sixteen(i : u32) -> Sixteen {
    return two_eights(eight(i), eight(i + 1u));
}

const UNIT : u32 = 8u;
alias Acts = Eight;

// Activations of unit u of a row that begins at x_at(base).
fn acts(base : u32, u : u32) -> Acts {
    return Acts(x_at(base + 2u * u), x_at(base + 2u * u + 1u));
}

// Unit u of the row whose first is unit `at` of the buffer, times these.
fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let e = eight(at + u);
    return dot(e.a, v.a) + dot(e.b, v.b);
}
