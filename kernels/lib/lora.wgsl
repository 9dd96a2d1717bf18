// lora - the adapters of a linear, all at once: sum over k of s_k z_k B[:, k], where z = A x is made before.
// Needs Params with rank (of all together, a multiple of 8; 0: none), b_rows (rows of one whole B) and b_scales,
// and the buffers z (rank f32 a row) and b: for each matrix rank x b_rows f32, B turned; at b_scales the rank s_k.

// This lane's part for four rows of matrix `mat`; z begins at z_base.
fn lora_rows(mat : u32, rows : vec4<u32>, z_base : u32, lane : u32, lanes : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var k = lane; k < p.rank; k += lanes) {
        let at = vec4<u32>((mat * p.rank + k) * p.b_rows) + rows;
        sum += z[z_base + k] * b[p.b_scales + k] * vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
    }
    return sum;
}
