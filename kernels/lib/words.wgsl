// words - single numbers out of a weight buffer, which w_at() reads (lib/one_weight or lib/two_weights).

// Eight consecutive weights of a row.
struct Eight {
    a : vec4<f32>,
    b : vec4<f32>,
}

// Sixteen of them; in a shape with blocks they begin at an even eight.
struct Sixteen {
    a : vec4<f32>,
    b : vec4<f32>,
    c : vec4<f32>,
    d : vec4<f32>,
}

fn both(a : Eight, b : Eight) -> Sixteen {
    return Sixteen(a.a, a.b, b.a, b.b);
}

fn word_at(i : u32) -> u32 {
    return w_at(i >> 2u)[i & 3u];
}

// Two words, the first at an even place.
fn two_words(i : u32) -> vec2<u32> {
    let four = w_at(i >> 2u);
    return select(four.xy, four.zw, (i & 2u) == 2u);
}

// Half i of the halves that begin at word `first`.
fn half_at(first : u32, i : u32) -> f32 {
    let two = unpack2x16float(word_at(first + (i >> 1u)));
    return select(two.x, two.y, (i & 1u) == 1u);
}
