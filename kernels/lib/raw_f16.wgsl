// raw_f16 - the shape of shape_f16, which is halves, see lib/raw.

//!include lib/base.wgsl

struct Raw {
    a : vec4<u32>,
    b : vec4<u32>,
}

fn raw_at(i : u32) -> Raw {
    return Raw(w_at(i), w_at(i + 1u));
}

fn halves_of(r : Raw, i : u32) -> Halves {
    return Halves(r.a, r.b);
}
