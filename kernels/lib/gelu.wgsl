// gelu - the tanh form: x/2 (1 + tanh u) = x / (1 + e^(-2u)) with u = sqrt(2/pi) (x + 0.044715 x^3).
// The quotient neither cancels for negative x nor meets a tanh that overflows; past 80 it is 0 in f32.
fn gelu_tanh(x : vec4<f32>) -> vec4<f32> {
    let u = 0.79788456080286536 * (x + 0.044715 * x * x * x);
    return x / (1.0 + exp(min(-2.0 * u, vec4<f32>(80.0))));
}
