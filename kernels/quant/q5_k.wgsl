// q5_k - a block of 256: eleven vec4, a header, 32 bytes of fifth bits (bit g of byte l is group g,
// weight l), 128 bytes of nibbles as in the file. value = d sc q - dmin mn
//
// The header is that of Q4_K, drawn in src/quant/affine.h: d, dmin, and eight pairs (sc, mn) of six
// bits in twelve bytes. The groups 2p and 2p + 1 are the nibbles of the same bytes, so their
// numbers come together: vec4(d sc, d sc', dmin mn, dmin mn').

//!include lib/base.wgsl

// Of the groups 2p and 2p + 1.
fn affine_pair(head : vec4<u32>, p : u32) -> vec4<f32> {
    let s = head.yzw >> vec3<u32>(16u * (p & 1u));
    let low = s.xy & vec2<u32>(0x3f3fu);
    let high = (vec2<u32>(s.z, s.z >> 4u) & vec2<u32>(0x0f0fu)) |
               ((s.xy >> vec2<u32>(2u)) & vec2<u32>(0x3030u));
    let two = select(low, high, p > 1u);
    let d = unpack2x16float(head.x);
    return d.xxyy * vec4<f32>(vec4<u32>(two.x & 0xffu, two.x >> 8u, two.y & 0xffu, two.y >> 8u));
}

// The same in fewer instructions where p is that of many headers in turn, as in the dot products of
// a lane: what is chosen by it is chosen once.
fn affine_lane(head : vec4<u32>, p : u32) -> vec4<f32> {
    // Six bits of the pairs 0 and 1 lie together; of 2 and 3 four lie in the last word, two above
    // the others' six.
    let upper = p > 1u;
    let shift = 16u * (p & 1u);
    let four = select(0u, 0x0f0fu, upper);
    let rest = select(0x3f3fu, 0x3030u, upper);
    let past = vec2<u32>(shift + select(0u, 2u, upper));
    let two =
        ((head.ww >> vec2<u32>(shift, shift + 4u)) & vec2<u32>(four)) |
        ((head.yz >> past) & vec2<u32>(rest));
    let d = unpack2x16float(head.x);
    return d.xxyy * vec4<f32>(vec4<u32>(two.x & 0xffu, two.x >> 8u, two.y & 0xffu, two.y >> 8u));
}

fn eight(i : u32) -> Eight {
    let head = 11u * (i >> 5u);
    let group = (i >> 2u) & 7u;
    let high = 4u * head + 4u + 2u * (i & 3u);
    let first = 4u * head + 12u + 8u * (group >> 1u) + 2u * (i & 3u);
    let shift = 4u * (group & 1u);
    let pair = affine_pair(w_at(head), group >> 1u);
    let m = select(pair.xz, pair.yw, (group & 1u) == 1u);
    let low = (two_words(first) >> vec2<u32>(shift)) & vec2<u32>(0x0f0f0f0fu);
    let bit = (two_words(high) >> vec2<u32>(group)) & vec2<u32>(0x01010101u);
    let q = low | (bit << vec2<u32>(4u));
    return Eight(m.x * bytes4(q.x, 0.0) - m.y, m.x * bytes4(q.y, 0.0) - m.y);
}

fn sixteen(i : u32) -> Sixteen {
    let head = 11u * (i >> 5u);
    let group = (i >> 2u) & 7u;
    let side = (i >> 1u) & 1u;
    let pair = affine_pair(w_at(head), group >> 1u);
    let m = select(pair.xz, pair.yw, (group & 1u) == 1u);
    let low = w_at(head + 3u + 2u * (group >> 1u) + side) >> vec4<u32>(4u * (group & 1u));
    let bit = (w_at(head + 1u + side) >> vec4<u32>(group)) & vec4<u32>(0x01010101u);
    let q = (low & vec4<u32>(0x0f0f0f0fu)) | (bit << vec4<u32>(4u));
    return scaled16(q, 0.0, m.x, -m.y);
}

// ---- few rows: a lane's unit is one vec4 of nibbles ----

// Four lanes share the fifth bits, eight a header.

const UNIT : u32 = 32u;
alias Acts = Acts32;

// vec4 number u % 8 of a block's nibbles has sixteen weights of each of two groups, 32 apart. The
// sums of the activations meet the groups' offsets.
fn acts(base : u32, u : u32) -> Acts {
    let first = 4u * (u >> 1u) + (u & 1u);
    return Acts(run_at(base, first), run_at(base, first + 2u));
}

// Bit g of every byte, as bit 4.
fn fifth16(high : vec4<u32>, g : u32) -> vec4<u32> {
    return ((high >> vec4<u32>(g)) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}

// Rows are whole blocks. What depends on u alone is the same for all rows of a row group.
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

// ---- subgroup matrices: the bits of sixteen weights, and halves of them ----

struct Raw {
    head : vec4<u32>,
    high : vec4<u32>,
    q : vec4<u32>,
}

fn raw_at(i : u32) -> Raw {
    let head = 11u * (i >> 5u);
    let side = (i >> 1u) & 1u;
    return Raw(w_at(head), w_at(head + 1u + side), w_at(head + 3u + 2u * ((i >> 3u) & 3u) + side));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let group = (i >> 2u) & 7u;
    let m = affine_of(r.head, group);
    let low = (r.q >> vec4<u32>(4u * (group & 1u))) & vec4<u32>(0x0f0f0f0fu);
    let bit = (r.high >> vec4<u32>(group)) & vec4<u32>(0x01010101u);
    return half_codes16(low | (bit << vec4<u32>(4u)), m.x, -m.y);
}
