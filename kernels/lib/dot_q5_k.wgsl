// dot_q5_k - a lane's unit is one vec4 of nibbles; four lanes share the fifth bits, eight a header.
//!include lib/shape_q5_k.wgsl
//!include lib/nibbles.wgsl
const UNIT : u32 = 32u;
alias Acts = Acts32;

fn acts(base : u32, u : u32) -> Acts {
    let first = 4u * (u >> 1u) + (u & 1u);
    return Acts(run_at(base, first), run_at(base, first + 2u));
}

// Bit g of every byte, as bit 4.
fn fifth16(high : vec4<u32>, g : u32) -> vec4<u32> {
    return ((high >> vec4<u32>(g)) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}

// Rows are whole blocks. What depends on u alone is the same for all rows of a team.
fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let row = 11u * (at >> 3u);
    let head = 11u * (u >> 3u);
    let g = u & 6u;
    let high = w_at(row + (head + 1u + (u & 1u)));
    let q = w_at(row + (head + 3u + (u & 7u)));
    let pair = affine_lane(w_at(row + head), g >> 1u);
    let products = vec2<f32>(dot16(low_nibbles(q) | fifth16(high, g), 0.0, v.a),
                             dot16(high_nibbles(q) | fifth16(high, g + 1u), 0.0, v.b));
    return dot(pair.xy, products) - dot(pair.zw, vec2<f32>(v.a.sum, v.b.sum));
}
