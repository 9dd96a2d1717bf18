// linears_bare - matrices without adapters.
fn adapted(matrix : u32, first : u32, tok : u32, lane : u32) -> vec4<f32> {
    return vec4<f32>();
}
