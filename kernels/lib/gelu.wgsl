// gelu - the tanh form: x/2 (1 + tanh u) = x / (1 + e^(-2u)) with u = sqrt(2/pi) (x + 0.044715 x^3).
// The quotient does not cancel for negative x. Beyond +-10 it is x or 0 in f32, so nothing overflows.
fn gelu_tanh(x : vec4<f32>) -> vec4<f32> {
    let c = clamp(x, vec4<f32>(-10.0), vec4<f32>(10.0));
    let u = 0.79788456080286536 * (c + 0.044715 * c * c * c);
    return max(x, vec4<f32>(-10.0)) / (1.0 + exp(-2.0 * u));
}

fn gelu(x : f32) -> f32 {
    return gelu_tanh(vec4<f32>(x)).x;
}
