// experts_gate_up_matmul_io - parameters and buffers of experts_gate_up_matmul in both of its tiers.
struct Params {
    cols : u32,
    n_ff : u32, // rows of gate, and of up
    mat0 : u32, // first expert of this buffer
    n_mat : u32,
    n_tiles : u32,
    n_used : u32,
    by_slot : u32, // 1: x has a row for every slot
    x_stride : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of the adapters, see lib/lora.wgsl
    b_rows : u32,
    b_scales : u32,
}

//!include lib/experts_buffers.wgsl
