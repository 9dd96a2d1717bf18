// dropout - which numbers of x an adapter sees: dropout_row() and dropout_factor() of
// src/ops/ops.h, to the bit. Needs Params with salt (the adapter's), share (left out) and kept (1 /
// (1 - share)); the pass's key is the step's seed.
//!include lib/base.wgsl
//!include lib/step.wgsl
override DROP : u32 = 0u; // 0: it sees all of x

// What the numbers of a row share.
fn dropout_row(row : u32) -> u32 {
    let salted = mix32(vec4<u32>(p.salt + 0x9e3779b9u * row)).x;
    return mix32(vec4<u32>(step.seed_lo ^ salted)).x;
}

// What multiplies columns 4 c .. 4 c + 3.
fn dropout_factors(row_hash : u32, c : u32) -> vec4<f32> {
    let hash = mix32(vec4<u32>(row_hash + 4u * c) + vec4<u32>(0u, 1u, 2u, 3u));
    let unit = vec4<f32>(hash >> vec4<u32>(8u)) * 5.9604644775390625e-8; // 2^-24
    return select(vec4<f32>(p.kept), vec4<f32>(), unit < vec4<f32>(p.share));
}
