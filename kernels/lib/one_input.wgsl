// one_input - where the products read an activation: from x.
fn x_at(i : u32) -> vec4<f32> {
    return x[i];
}
