// one_weight - where the shapes read a weight: from w.
//!include lib/parts.wgsl

fn w_at(i : u32) -> vec4<u32> {
    return w[i];
}

fn word_at(i : u32) -> u32 {
    return w[i >> 2u][i & 3u];
}
