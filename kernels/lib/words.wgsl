// words - numbers out of a weight buffer, of which w_at() reads four words and word_at() one (lib/one_weight, lib/two_weights
// or lib/three_weights).

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

fn two_words(i : u32) -> vec2<u32> {
    return vec2<u32>(word_at(i), word_at(i + 1u));
}

// Half i of the halves that begin at word `first`.
fn half_at(first : u32, i : u32) -> f32 {
    let two = unpack2x16float(word_at(first + (i >> 1u)));
    return select(two.x, two.y, (i & 1u) == 1u);
}
