// third_q6_k - the third matrix is Q6_K, whatever the others are.
//!include quant/q6_k.wgsl as third
//!include lib/four_rows.wgsl as third

fn third_rows(rows : vec4<u32>, x_base : u32, lane : u32) -> vec4<f32> {
    return four_rows_third(rows, x_base, lane);
}
