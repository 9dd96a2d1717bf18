// four_weights - where the shapes read a weight: from w, w2 or w3 as lib/three_weights has them, or from w4, of the same shape too.
var<private> which : u32;

fn w_at(i : u32) -> vec4<u32> {
    if (which == 0u) {
        return w[i];
    }
    if (which == 1u) {
        return w2[i];
    }
    if (which == 2u) {
        return w3[i];
    }
    return w4[i];
}

fn word_at(i : u32) -> u32 {
    return w_at(i >> 2u)[i & 3u];
}

// Of `which`.
fn of_four(first : u32, second : u32, third : u32, fourth : u32) -> u32 {
    return select(select(select(fourth, third, which == 2u), second, which == 1u), first, which == 0u);
}

// Where its second and third parts begin, in words: src/gpu/repack.h.
fn w_scales() -> u32 {
    return of_four(p.scales, p.scales2, p.scales3, p.scales4);
}

fn w_high() -> u32 {
    return of_four(p.high, p.high2, p.high3, p.high4);
}

fn w_d() -> u32 {
    return of_four(p.d, p.d2, p.d3, p.d4);
}
