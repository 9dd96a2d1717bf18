// gelu_bwd - the slope of lib/base.wgsl's function. With s = 1 / (1 + e^(-2u)), gelu = x s and
// s' = 2 s (1 - s) u'. Beyond +-10 it is 1 or 0 in f32.
fn gelu_slope(x : vec4<f32>) -> vec4<f32> {
    let c = clamp(x, vec4<f32>(-10.0), vec4<f32>(10.0));
    let u = 0.79788456080286536 * (c + 0.044715 * c * c * c);
    let s = 1.0 / (1.0 + exp(-2.0 * u));
    let other = 1.0 / (1.0 + exp(2.0 * u)); // 1 - s without cancellation
    return s + c * 2.0 * s * other * 0.79788456080286536 * (1.0 + 0.134145 * c * c);
}
