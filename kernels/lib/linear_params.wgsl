// linear_params - of linear and matmul. The offsets scales, high and d are those of struct gpu_layout in src/gpu/repack.h.
struct Params {
    cols : u32,     // activations a row
    rows : u32,     // rows of W in this buffer
    row0 : u32,     // which rows of the whole W they are: y[t][row0 ...]
    n_tok : u32,    // rows of x and y
    x_stride : u32, // f32 from row to row, a multiple of 4
    y_stride : u32,
    scales : u32, // offsets in u32 words
    high : u32,
    d : u32,
    rank : u32, // of the adapters, see lib/lora.wgsl
    b_rows : u32,
    b_scales : u32,
    z_parts : u32, // linear: z is the sum of so many rows of it
    by_stride : u32, // f32 from row to row of `by`
    by_col : u32,    // its column that meets column 0 of y
    scale : f32,     // times all
    n_split : u32,   // matmul: shares of the columns, each with a y of its own; 0 or 1: all at once
}
