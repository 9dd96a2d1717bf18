// experts_down_bare - matrices without adapters.
fn adapted(mine : vec4<f32>, rows : vec4<u32>, tok : u32, lane : u32) -> vec4<f32> {
    return mine;
}
