// three_weights - where the shapes read a weight: from w, w2 or w3, matrices of the same shape and their own sizes.
var<private> which : u32;

fn w_at(i : u32) -> vec4<u32> {
    if (which == 0u) {
        return w[i];
    }
    if (which == 1u) {
        return w2[i];
    }
    return w3[i];
}

fn word_at(i : u32) -> u32 {
    if (which == 0u) {
        return w[i >> 2u][i & 3u];
    }
    if (which == 1u) {
        return w2[i >> 2u][i & 3u];
    }
    return w3[i >> 2u][i & 3u];
}

// Where its second and third parts begin, in words: src/gpu/repack.h.
fn w_scales() -> u32 {
    return select(select(p.scales3, p.scales2, which == 1u), p.scales, which == 0u);
}

fn w_high() -> u32 {
    return select(select(p.high3, p.high2, which == 1u), p.high, which == 0u);
}

fn w_d() -> u32 {
    return select(select(p.d3, p.d2, which == 1u), p.d, which == 0u);
}
