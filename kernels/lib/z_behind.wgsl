// z_behind - z = A x lies behind x. Needs the buffer x.
fn z_of(at : u32) -> f32 {
    return x[at >> 2u][at & 3u];
}
