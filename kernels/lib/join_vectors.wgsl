// join_vectors - what a join multiplies with, where all of it lies in the buffer vectors. Needs p with has_scale, post_at,
// scale_at and next_at.
fn post_of(i : u32) -> vec4<f32> {
    return vectors[p.post_at + i];
}

fn factor() -> f32 {
    if (p.has_scale != 0u) {
        return vectors[p.scale_at].x;
    }
    return 1.0;
}

fn lead(i : u32) -> vec4<f32> {
    return vectors[p.next_at + i];
}
