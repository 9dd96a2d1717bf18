// dot_q6_k - a lane's unit is vec4 number i % 8 of a block's ql: sixteen weights of one group in
// the low nibbles, and of the group 64 further in the high ones. Two lanes share a vec4 of qh.
//!include lib/shape_q6_k.wgsl
//!include lib/nibbles.wgsl

const UNIT : u32 = 32u;
alias Acts = Acts32;

fn acts(base : u32, u : u32) -> Acts {
    let first = base + 32u * (u >> 2u) + 4u * (u & 3u);
    return Acts(run_at(first), run_at(first + 16u));
}

// Two bits of every byte, as bits 4 and 5.
fn upper16(high : vec4<u32>, shift : u32) -> vec4<u32> {
    return ((high >> vec4<u32>(shift)) & vec4<u32>(0x03030303u)) << vec4<u32>(4u);
}

fn unit_dot(i : u32, v : Acts) -> f32 {
    let block = i >> 3u;
    let half = (i >> 2u) & 1u;
    let part = i & 3u;
    let ql = w_at(12u * block + (i & 7u));
    let qh = w_at(12u * block + 8u + 2u * half + (part & 1u));
    let four = two_words(w_scales() + 4u * block + 2u * half);
    let sc = (four >> vec2<u32>(8u * part)) & vec2<u32>(0xffu);
    let products = vec2<f32>(dot16(low_nibbles(ql) | upper16(qh, part & 2u), 32.0, v.a),
                             dot16(high_nibbles(ql) | upper16(qh, 4u + (part & 2u)), 32.0, v.b));
    return half_at(w_d(), block) * dot(vec2<f32>(sc ^ vec2<u32>(0x80u)) - 128.0, products);
}
