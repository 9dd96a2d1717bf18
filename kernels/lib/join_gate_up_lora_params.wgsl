// join_gate_up_lora_params - as lib/join_gate_up_params, with adapters: lib/gate_up_lora.
struct Params {
    cols : u32,
    rows : u32,  // of each matrix
    n_tok : u32, // rows of x and y
    y_stride : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    has_branch : u32,
    post_at : u32, // in vectors, in vec4s
    next_at : u32,
    settles : u32, // s is wanted
    eps : f32,
    rank : u32,
    rank2 : u32,
    b_scales : u32,
    b_scales2 : u32,
    z_at : u32, // where the z of each matrix begin, see lib/ahead.wgsl
    z_at2 : u32,
    b_at2 : u32,     // where B of the second begins in b
    part_rank : u32, // from here on: lib/parts_of_z
    part_at : u32,
}

fn b_word(i : u32) -> f32 {
    return b[select(i, p.b_at2 + i, second)];
}

fn begin_adapters(j : Joining) {
    ahead = j;
}
