// digits - sixteen activations as whole numbers with one scale, and their products with sixteen codes. For rows
// that many products read: making the digits costs as much as four rows save. See lib/floats.
//
// x = scale v with |v| <= 127 2^16: as many digits as f32 has for the largest of the sixteen. v is written with three
// digits from -128 to 127 to the base 256, and one digit of four activations is a word, so that dot4I8Packed
// multiplies four codes with four digits and adds them up, exactly, in one instruction. Decoding codes to
// floats takes twice as long; on large GPUs that and not memory sets the speed.
//!include lib/settle.wgsl
struct Run {
    high : vec4<u32>, // a digit of sixteen activations
    middle : vec4<u32>,
    low : vec4<u32>,
    scale : f32,
    sum : f32, // of the activations
}

// Activations 4i to 4i + 15.
fn run_at(i : u32) -> Run {
    let s = settled_at(i);
    return Run(s.a, s.b, s.c, bitcast<f32>(s.d.x), bitcast<f32>(s.d.y));
}

fn sum_digits(q : vec4<u32>, digit : vec4<u32>) -> i32 {
    return (dot4I8Packed(q.x, digit.x) + dot4I8Packed(q.y, digit.y)) +
           (dot4I8Packed(q.z, digit.z) + dot4I8Packed(q.w, digit.w));
}

// Codes are signed bytes.
fn dot16_signed(q : vec4<u32>, r : Run) -> f32 {
    let low = 256 * sum_digits(q, r.middle) + sum_digits(q, r.low);
    return r.scale * fma(f32(sum_digits(q, r.high)), 65536.0, f32(low));
}

// Codes are bytes below 128, `zero` the one that stands for 0.
fn dot16(q : vec4<u32>, zero : f32, r : Run) -> f32 {
    return dot16_signed(q, r) - zero * r.sum;
}
