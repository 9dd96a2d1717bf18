// two_weights - where the shapes read a weight: from w, or from w2, a matrix of the same shape and size.
//!include lib/parts.wgsl
var<private> second : bool;

fn w_at(i : u32) -> vec4<u32> {
    if (second) {
        return w2[i];
    }
    return w[i];
}

fn word_at(i : u32) -> u32 {
    if (second) {
        return w2[i >> 2u][i & 3u];
    }
    return w[i >> 2u][i & 3u];
}
