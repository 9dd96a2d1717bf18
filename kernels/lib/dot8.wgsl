// dot8 - the products of a lane, eight weights at a time: for shapes without a scale.
const CODES : bool = false; // of weights that are floats nothing is made ready
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
