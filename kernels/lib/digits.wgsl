// digits - sixteen activations as whole numbers with one scale, and their products with sixteen codes. For kernels
// that hold a row and use it for many: making the digits costs as much as four rows save. See lib/floats.
//
// x = scale v with |v| <= 127 2^16: as many digits as f32 has for the largest of the sixteen. v is written with three
// digits from -128 to 127 to the base 256, and one digit of four activations is a word, so that dot4I8Packed
// multiplies four codes with four digits and adds them up, exactly, in one instruction. Decoding codes to
// floats takes twice as long; on large GPUs that and not memory sets the speed.
const LARGEST : f32 = 8323072.0; // 127 2^16

struct Run {
    high : vec4<u32>, // a digit of sixteen activations
    middle : vec4<u32>,
    low : vec4<u32>,
    scale : f32,
    sum : f32, // of the activations
}

fn across(v : vec4<f32>) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

// Four activations to digits: the low bytes of the words are signed digits.
fn digits_of(x : vec4<f32>, inverse : f32) -> vec4<u32> {
    let v = bitcast<vec4<u32>>(vec4<i32>(round(x * inverse)));
    return (v + vec4<u32>(0x8080u)) ^ vec4<u32>(0x8080u);
}

// What x_at(i) to x_at(i + 3) are kept as: the digits, then scale and sum.
fn settle(a : vec4<f32>, b : vec4<f32>, c : vec4<f32>, d : vec4<f32>) -> Settled {
    let size = max(max(abs(a), abs(b)), max(abs(c), abs(d)));
    let most = max(max(size.x, size.y), max(size.z, size.w));
    let inverse = select(0.0, LARGEST / most, most > 1.0e-30);
    let s = digits_of(a, inverse);
    let t = digits_of(b, inverse);
    let u = digits_of(c, inverse);
    let v = digits_of(d, inverse);
    let eight = vec4<u32>(8u);
    let sixteen = vec4<u32>(16u);
    let sum = across((a + b) + (c + d));
    return Settled(vec4<u32>(pack4xU8(s >> sixteen), pack4xU8(t >> sixteen), pack4xU8(u >> sixteen), pack4xU8(v >> sixteen)),
                   vec4<u32>(pack4xU8(s >> eight), pack4xU8(t >> eight), pack4xU8(u >> eight), pack4xU8(v >> eight)),
                   vec4<u32>(pack4xU8(s), pack4xU8(t), pack4xU8(u), pack4xU8(v)),
                   vec4<u32>(bitcast<u32>(most / LARGEST), bitcast<u32>(sum), 0u, 0u));
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
