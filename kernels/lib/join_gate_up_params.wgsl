// join_gate_up_params - of matrices without adapters.
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
}

fn begin_adapters(j : Joining) {
}

fn begin_part(block : u32, id : u32) -> vec4<f32> {
    return vec4<f32>();
}

fn add_part(first : vec4<f32>, block : u32, id : u32) {
}

fn put_part(group : u32, id : u32) {
}
