// settle - sixteen activations to whole numbers with one scale: what lib/digits multiplies.
//!include lib/settled.wgsl
const LARGEST : f32 = 8323072.0; // 127 2^16

fn across(v : vec4<f32>) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

// Four activations to digits: the low bytes of the words are signed digits.
fn digits_of(x : vec4<f32>, inverse : f32) -> vec4<u32> {
    let v = bitcast<vec4<u32>>(vec4<i32>(round(x * inverse)));
    return (v + vec4<u32>(0x8080u)) ^ vec4<u32>(0x8080u);
}

fn low_bytes(v : vec4<u32>) -> u32 {
    let b = (v & vec4<u32>(0xffu)) << vec4<u32>(0u, 8u, 16u, 24u);
    return (b.x | b.y) | (b.z | b.w);
}

// What they are kept as: the digits, then scale and sum. Without the builtins of lib/digits: kernels that settle also run
// where there are none.
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
    return Settled(vec4<u32>(low_bytes(s >> sixteen), low_bytes(t >> sixteen), low_bytes(u >> sixteen), low_bytes(v >> sixteen)),
                   vec4<u32>(low_bytes(s >> eight), low_bytes(t >> eight), low_bytes(u >> eight), low_bytes(v >> eight)),
                   vec4<u32>(low_bytes(s), low_bytes(t), low_bytes(u), low_bytes(v)),
                   vec4<u32>(bitcast<u32>(most / LARGEST), bitcast<u32>(sum), 0u, 0u));
}
