// q6_k - a block of 256: twelve vec4, for each group of 32 one of nibbles, whose first sixteen
// weights are the low ones, and half a one of the two bits above them, see repack_q6_k; then 16
// signed bytes at w_scales() and a half at w_d(). value = d sc (q - 32)

//!include lib/base.wgsl

// Two bits of sixteen weights out of a word: those of weight 4c + b as bits 4 and 5 of byte b of
// word c.
fn upper16(bits : u32) -> vec4<u32> {
    return vec4<u32>(bits << 4u, bits << 2u, bits, bits >> 2u) & vec4<u32>(0x30303030u);
}

fn q6_scale(block : u32, group : u32) -> f32 {
    let four = word_at(w_scales() + 4u * block + (group >> 2u));
    let byte = (four >> (8u * (group & 3u))) & 0xffu;
    return half_at(w_d(), block) * (f32(byte ^ 0x80u) - 128.0);
}

// Half a run.
fn eight(i : u32) -> Eight {
    let block = 48u * (i >> 5u);
    let group = (i >> 2u) & 7u;
    let low = two_words(block + 4u * group + 2u * (i & 1u)) >> vec2<u32>(2u * (i & 2u));
    let high = upper16(word_at(block + 32u + ((i >> 1u) & 15u)));
    let q = (low & vec2<u32>(0x0f0f0f0fu)) | select(high.xy, high.zw, (i & 1u) == 1u);
    let s = q6_scale(i >> 5u, (i >> 1u) & 15u);
    return Eight(s * bytes4(q.x, 32.0), s * bytes4(q.y, 32.0));
}

fn sixteen(i : u32) -> Sixteen {
    let block = i >> 5u;
    let low = w_at(12u * block + ((i >> 2u) & 7u)) >> vec4<u32>(2u * (i & 2u));
    let high = upper16(word_at(48u * block + 32u + ((i >> 1u) & 15u)));
    return scaled16((low & vec4<u32>(0x0f0f0f0fu)) | high, 32.0, q6_scale(block, (i >> 1u) & 15u),
                    0.0);
}

// ---- few rows: a lane's unit is a group ----

// One vec4 of nibbles, and half a vec4 of the two bits above them, of which its neighbour has the
// other half.
const UNIT : u32 = 32u;
alias Acts = Acts32;

// Two runs side by side.
fn acts(base : u32, u : u32) -> Acts {
    return Acts(run_at(base, 2u * u), run_at(base, 2u * u + 1u));
}

// Rows are whole blocks. What depends on u alone is the same for all rows of a row group.
fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let row = at >> 3u;
    let block = u >> 3u;
    let group = u & 7u;
    let low = w_at(12u * row + (12u * block + group));
    let both = w_at(12u * row + (12u * block + 8u + (group >> 1u)));
    let high = select(both.xy, both.zw, (group & 1u) == 1u);
    let four = word_at(w_scales() + 4u * row + (4u * block + (group >> 1u)));
    let sc =
        (vec2<u32>(four) >> (vec2<u32>(16u * (group & 1u)) + vec2<u32>(0u, 8u))) & vec2<u32>(0xffu);
    let products = vec2<f32>(dot16(low_nibbles(low) | upper16(high.x), 32.0, v.a),
                             dot16(high_nibbles(low) | upper16(high.y), 32.0, v.b));
    return half_at(w_d(), row + block) * dot(vec2<f32>(sc ^ vec2<u32>(0x80u)) - 128.0, products);
}

// ---- subgroup matrices: the bits of sixteen weights, and halves of them ----

struct Raw {
    low : vec4<u32>,
    high : u32,
    scales : u32,
    d : u32,
}

fn raw_at(i : u32) -> Raw {
    let block = i >> 5u;
    return Raw(w_at(12u * block + ((i >> 2u) & 7u)), word_at(48u * block + 32u + ((i >> 1u) & 15u)),
               word_at(w_scales() + 4u * block + ((i >> 3u) & 3u)), word_at(w_d() + (block >> 1u)));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    let low = (r.low >> vec4<u32>(2u * (i & 2u))) & vec4<u32>(0x0f0f0f0fu);
    let byte = (r.scales >> (8u * ((i >> 1u) & 3u))) & 0xffu;
    let s = half_of(r.d, i >> 5u) * (f32(byte ^ 0x80u) - 128.0);
    return half_codes16(low | upper16(r.high), s, -32.0 * s);
}
