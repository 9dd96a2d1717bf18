// digits - sixteen activations as whole numbers with one scale, and their products with sixteen codes. For rows
// that many products read: making the digits costs as much as four rows save. See lib/floats.
//
// x = scale v with |v| <= 2^21: four times coarser than f32 for the largest of the sixteen, so that its sum with codes
// below 64 fits 32 bits. v is written with three digits from -128 to 127 to the base 256, and one digit of four
// activations is a word, so that dot4I8Packed multiplies four codes with four digits and adds them up, exactly, in one
// instruction. Decoding codes to floats takes twice as long; on large GPUs that and not memory sets the speed.

//!include lib/base.wgsl

struct Run {
    high : vec4<u32>, // a digit of sixteen activations
    middle : vec4<u32>,
    low : vec4<u32>,
    scale : f32,
    sum : f32, // of the activations
}

// Run i of the row that begins at vec4 `base`.
fn run_at(base : u32, i : u32) -> Run {
    let s = settled_at(base, i);
    return Run(s.a, s.b, s.c, bitcast<f32>(s.d.x), bitcast<f32>(s.d.y));
}

// Sixteen products on top of `sum`.
fn add_digits(sum : i32, q : vec4<u32>, digit : vec4<u32>) -> i32 {
    return dot4I8Packed(q.w, digit.w) + (dot4I8Packed(q.z, digit.z) + (dot4I8Packed(q.y, digit.y) + (dot4I8Packed(q.x, digit.x) + sum)));
}

// Codes are bytes below 64, `zero` the one that stands for 0. What overflows on the way comes back: the sum fits.
fn dot16(q : vec4<u32>, zero : f32, r : Run) -> f32 {
    let sum = add_digits(add_digits(add_digits(0, q, r.high) << 8u, q, r.middle) << 8u, q, r.low);
    return r.scale * f32(sum) - zero * r.sum;
}

// Codes are signed bytes.
fn dot16_signed(q : vec4<u32>, r : Run) -> f32 {
    let low = add_digits(add_digits(0, q, r.middle) << 8u, q, r.low);
    return r.scale * fma(f32(add_digits(0, q, r.high)), 65536.0, f32(low));
}
