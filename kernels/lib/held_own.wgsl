// held_own - the row that a workgroup holds, as own_z reads it.
fn digits4(word : u32) -> vec4<f32> {
    return vec4<f32>(unpack4xI8(word));
}

fn own_x(i : u32) -> vec4<f32> {
    if (!CODES) {
        return x_at(i);
    }
    let run = i & 0xfffffffcu;
    let j = i & 3u;
    let scale = bitcast<f32>(held[place(run + 3u)].x);
    return scale * (65536.0 * digits4(held[place(run)][j]) + 256.0 * digits4(held[place(run + 1u)][j]) +
                    digits4(held[place(run + 2u)][j]));
}
