// acts - rows in the form that products of few rows read, which the kernel before writes to its
// buffer s. axis acts: f32; int8, where the device multiplies int8.

//!include lib/base.wgsl

// Sixteen activations, a run, in four parts. A row is four planes: the parts a of all of its runs,
// then the parts b, c and d. So lanes that read neighbouring runs read neighbouring vec4s.
struct Ready {
    a : vec4<u32>,
    b : vec4<u32>,
    c : vec4<u32>,
    d : vec4<u32>,
}

// Run i of a row of `cols` columns that begins at vec4 `base` of the buffer s.
fn put_run(base : u32, cols : u32, i : u32, v : Ready) {
    let runs = cols / 16u;
    let at = base + i;
    s[at] = v.a;
    s[at + runs] = v.b;
    s[at + 2u * runs] = v.c;
    s[at + 3u * runs] = v.d;
}

//!if acts != int8
// Each part has four activations as they are.
fn make_ready(a : vec4<f32>, b : vec4<f32>, c : vec4<f32>, d : vec4<f32>) -> Ready {
    return Ready(bitcast<vec4<u32>>(a), bitcast<vec4<u32>>(b), bitcast<vec4<u32>>(c),
                 bitcast<vec4<u32>>(d));
}
//!else
// x = scale v with |v| <= 2^21, where v has three digits from -128 to 127 to the base 256. a, b and
// c have the high, middle and low digits, four activations to a word; d has the scale and the sum
// of the activations, as f32.

const LARGEST : f32 = 2097152.0; // 2^21

// Four activations as whole numbers, each as its three digits in its low bytes. A float of 1.5 2^23
// has the whole number that was added to it in its low bits, so that no conversion is needed.
fn planes_of(x : vec4<f32>, inverse : f32) -> vec4<u32> {
    let v = bitcast<vec4<u32>>(fma(x, vec4<f32>(inverse), vec4<f32>(12582912.0)));
    return (v + vec4<u32>(0x8080u - 0x4b400000u)) ^ vec4<u32>(0x8080u);
}

// The low bytes of all four, their second and their third ones: two neighbours first, then both
// pairs.
struct Planes {
    low : u32,
    middle : u32,
    high : u32,
}

fn transposed(v : vec4<u32>) -> Planes {
    let even = (v.xz & vec2<u32>(0xff00ffu)) | ((v.yw << vec2<u32>(8u)) & vec2<u32>(0xff00ff00u));
    let odd = ((v.xz >> vec2<u32>(8u)) & vec2<u32>(0xffu)) | (v.yw & vec2<u32>(0xff00u));
    return Planes((even.x & 0xffffu) | (even.y << 16u), odd.x | (odd.y << 16u),
                  (even.x >> 16u) | (even.y & 0xffff0000u));
}

// The size of the largest of sixteen activations, and what makes whole numbers of them.
fn largest_of(a : vec4<f32>, b : vec4<f32>, c : vec4<f32>, d : vec4<f32>) -> f32 {
    let size = max(max(abs(a), abs(b)), max(abs(c), abs(d)));
    return max(max(size.x, size.y), max(size.z, size.w));
}

fn inverse_of(most : f32) -> f32 {
    return select(0.0, LARGEST / most, most > 1.0e-30);
}

fn scale_and_sum(most : f32, a : vec4<f32>, b : vec4<f32>, c : vec4<f32>, d : vec4<f32>) ->
    vec4<u32> {
    return vec4<u32>(bitcast<u32>(most / LARGEST), bitcast<u32>(sum_four((a + b) + (c + d))), 0u,
                     0u);
}

// Without dot4I8Packed and its like: kernels that make_ready also run where there are none.
fn make_ready(a : vec4<f32>, b : vec4<f32>, c : vec4<f32>, d : vec4<f32>) -> Ready {
    let most = largest_of(a, b, c, d);
    let inverse = inverse_of(most);
    let s = transposed(planes_of(a, inverse));
    let t = transposed(planes_of(b, inverse));
    let u = transposed(planes_of(c, inverse));
    let v = transposed(planes_of(d, inverse));
    return Ready(vec4<u32>(s.high, t.high, u.high, v.high),
                   vec4<u32>(s.middle, t.middle, u.middle, v.middle),
                   vec4<u32>(s.low, t.low, u.low, v.low), scale_and_sum(most, a, b, c, d));
}
//!end
