// held_own - the row that a workgroup holds, as own_z reads it.
fn digits4(word : u32) -> vec4<f32> {
    return vec4<f32>(unpack4xI8(word));
}

fn own_x(i : u32) -> vec4<f32> {
    if (!CODES) {
        return x_at(i);
    }
    let run = settled_at(0u, i / 4u);
    let j = i & 3u;
    return bitcast<f32>(run.d.x) * (65536.0 * digits4(run.a[j]) + 256.0 * digits4(run.b[j]) + digits4(run.c[j]));
}
