// q4_k - a block of 256: nine vec4, a header and one of nibbles for each group of 32, whose first
// sixteen weights are the low ones, see repack_q4_k. value = d sc q - dmin mn
//
// The header is that of Q5_K too, drawn in src/quant/affine.h: d, dmin, and eight pairs (sc, mn) of
// six bits in twelve bytes.

//!include lib/base.wgsl

// (d sc, dmin mn) of group g. Where g is that of many headers in turn, as in the dot products of a
// lane, what is chosen by it is chosen once; affine_of() is for groups that change.
fn affine_group(head : vec4<u32>, g : u32) -> vec2<f32> {
    // Six bits of the groups 0 to 3 lie together; of the others four lie in the last word, two
    // above the six.
    let upper = g > 3u;
    let shift = 8u * (g & 3u);
    let four = select(0u, 0x0fu, upper);
    let rest = select(0x3fu, 0x30u, upper);
    let past = vec2<u32>(shift + select(0u, 2u, upper));
    let two =
        ((head.ww >> vec2<u32>(shift, shift + 4u)) & vec2<u32>(four)) |
        ((head.yz >> past) & vec2<u32>(rest));
    return unpack2x16float(head.x) * vec2<f32>(two);
}

fn eight(i : u32) -> Eight {
    let head = 9u * (i >> 5u);
    let group = (i >> 2u) & 7u;
    let first = 4u * (head + 1u + group) + 2u * (i & 1u);
    let m = affine_group(w_at(head), group);
    let q = (two_words(first) >> vec2<u32>(2u * (i & 2u))) & vec2<u32>(0x0f0f0f0fu);
    return Eight(m.x * bytes4(q.x, 0.0) - m.y, m.x * bytes4(q.y, 0.0) - m.y);
}

fn sixteen(i : u32) -> Sixteen {
    let head = 9u * (i >> 5u);
    let group = (i >> 2u) & 7u;
    let m = affine_group(w_at(head), group);
    let q = w_at(head + 1u + group) >> vec4<u32>(2u * (i & 2u));
    return scaled16(q & vec4<u32>(0x0f0f0f0fu), 0.0, m.x, -m.y);
}

// ---- few rows: a lane's unit is a group, one vec4 of nibbles; eight lanes share a header ----

const UNIT : u32 = 32u;
alias Acts = Acts32;

// Two runs side by side.
fn acts(base : u32, u : u32) -> Acts {
    return Acts(run_at(base, 2u * u), run_at(base, 2u * u + 1u));
}

// Rows are whole blocks. What depends on u alone is the same for all rows of a row group.
fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let row = 9u * (at >> 3u);
    let head = 9u * (u >> 3u);
    let q = w_at(row + (head + 1u + (u & 7u)));
    let m = affine_group(w_at(row + head), u & 7u);
    return m.x * (dot16(low_nibbles(q), 0.0, v.a) + dot16_high(q, 0.0, v.b)) -
        m.y * (v.a.sum + v.b.sum);
}

// ---- subgroup matrices: the bits of sixteen weights, and halves of them ----

struct Raw {
    head : vec4<u32>,
    q : vec4<u32>,
}

fn raw_at(i : u32) -> Raw {
    let head = 9u * (i >> 5u);
    return Raw(w_at(head), w_at(head + 1u + ((i >> 2u) & 7u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let m = affine_of(r.head, (i >> 2u) & 7u);
    let q = (r.q >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu);
    return half_codes16(q, m.x, -m.y);
}
