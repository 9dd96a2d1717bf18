// dot_q6_k - a lane's unit is vec4 number i % 8 of a block's ql: sixteen weights of one group in
// the low nibbles, and of the group 64 further in the high ones. Two lanes share a vec4 of qh.
//!include lib/shape_q6_k.wgsl
//!include lib/nibbles.wgsl

const UNIT : u32 = 32u;
alias Acts = Acts32;

fn acts(base : u32, u : u32) -> Acts {
    let first = 8u * (u >> 2u) + (u & 3u);
    return Acts(run_at(base, first), run_at(base, first + 4u));
}

// Two bits of every byte, as bits 4 and 5: bits 0 and 1, or with shift 2 bits 2 and 3; then bits 4 and 5, or 6 and 7.
fn upper16_low(high : vec4<u32>, shift : u32) -> vec4<u32> {
    return (high << vec4<u32>(4u - shift)) & vec4<u32>(0x30303030u);
}

fn upper16_high(high : vec4<u32>, shift : u32) -> vec4<u32> {
    return (high >> vec4<u32>(shift)) & vec4<u32>(0x30303030u);
}

// Rows are whole blocks. What depends on u alone is the same for all rows of a team.
fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let row = at >> 3u;
    let block = u >> 3u;
    let half = (u >> 2u) & 1u;
    let part = u & 3u;
    let ql = w_at(12u * row + (12u * block + (u & 7u)));
    let qh = w_at(12u * row + (12u * block + 8u + 2u * half + (part & 1u)));
    let four = two_words(w_scales() + 4u * row + (4u * block + 2u * half));
    let sc = (four >> vec2<u32>(8u * part)) & vec2<u32>(0xffu);
    let products = vec2<f32>(dot16(low_nibbles(ql) | upper16_low(qh, part & 2u), 32.0, v.a),
                             dot16(high_nibbles(ql) | upper16_high(qh, part & 2u), 32.0, v.b));
    return half_at(w_d(), row + block) * dot(vec2<f32>(sc ^ vec2<u32>(0x80u)) - 128.0, products);
}
