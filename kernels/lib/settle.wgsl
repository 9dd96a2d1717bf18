// settle - sixteen activations to whole numbers with one scale: what lib/digits multiplies.
//!include lib/settled.wgsl
const LARGEST : f32 = 2097152.0; // 2^21

fn across(v : vec4<f32>) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

// Four activations as whole numbers, each as its three digits in its low bytes. A float of 1.5 2^23 has the whole number that was
// added to it in its low bits, so that no conversion is needed.
fn digits_of(x : vec4<f32>, inverse : f32) -> vec4<u32> {
    let v = bitcast<vec4<u32>>(fma(x, vec4<f32>(inverse), vec4<f32>(12582912.0)));
    return (v + vec4<u32>(0x8080u - 0x4b400000u)) ^ vec4<u32>(0x8080u);
}

// The low bytes of all four, their second and their third ones: two neighbours first, then both pairs.
struct Digits {
    low : u32,
    middle : u32,
    high : u32,
}

fn transposed(v : vec4<u32>) -> Digits {
    let even = (v.xz & vec2<u32>(0xff00ffu)) | ((v.yw << vec2<u32>(8u)) & vec2<u32>(0xff00ff00u));
    let odd = ((v.xz >> vec2<u32>(8u)) & vec2<u32>(0xffu)) | (v.yw & vec2<u32>(0xff00u));
    return Digits((even.x & 0xffffu) | (even.y << 16u), odd.x | (odd.y << 16u), (even.x >> 16u) | (even.y & 0xffff0000u));
}

// The size of the largest of sixteen activations, and what makes whole numbers of them.
fn largest(a : vec4<f32>, b : vec4<f32>, c : vec4<f32>, d : vec4<f32>) -> f32 {
    let size = max(max(abs(a), abs(b)), max(abs(c), abs(d)));
    return max(max(size.x, size.y), max(size.z, size.w));
}

fn inverse_of(most : f32) -> f32 {
    return select(0.0, LARGEST / most, most > 1.0e-30);
}

fn scale_and_sum(most : f32, a : vec4<f32>, b : vec4<f32>, c : vec4<f32>, d : vec4<f32>) -> vec4<u32> {
    return vec4<u32>(bitcast<u32>(most / LARGEST), bitcast<u32>(across((a + b) + (c + d))), 0u, 0u);
}

// What they are kept as: the digits, then scale and sum. Without the builtins of lib/digits: kernels that settle also run
// where there are none.
fn settle(a : vec4<f32>, b : vec4<f32>, c : vec4<f32>, d : vec4<f32>) -> Settled {
    let most = largest(a, b, c, d);
    let inverse = inverse_of(most);
    let s = transposed(digits_of(a, inverse));
    let t = transposed(digits_of(b, inverse));
    let u = transposed(digits_of(c, inverse));
    let v = transposed(digits_of(d, inverse));
    return Settled(vec4<u32>(s.high, t.high, u.high, v.high), vec4<u32>(s.middle, t.middle, u.middle, v.middle),
                   vec4<u32>(s.low, t.low, u.low, v.low), scale_and_sum(most, a, b, c, d));
}
