// parts - where the second and third parts of a weight begin, in words: src/gpu/repack.h.
fn w_scales() -> u32 {
    return p.scales;
}

fn w_high() -> u32 {
    return p.high;
}

fn w_d() -> u32 {
    return p.d;
}
