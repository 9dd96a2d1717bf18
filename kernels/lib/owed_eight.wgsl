// owed_eight - eight k of what a row lacks, see lib/owed, where z is in one part: so that threads can share the k of a column. Needs
// Params with owed_at and owed_scales; owed_z(i), vec4 i of what the row lies in; owed_n(), vec4s of a row; the buffer b.

// s z of k .. k + 3.
fn owed_scaled(k : u32) -> vec4<f32> {
    return owed_z(p.owed_at + k / 4u) * b[p.owed_scales + k / 4u];
}

// Columns 4i .. 4i + 3, over k .. k + 7.
fn owed_eight(k : u32, i : u32) -> vec4<f32> {
    let n = owed_n();
    let at = k * n + i;
    let low = mat4x4<f32>(b[at], b[at + n], b[at + 2u * n], b[at + 3u * n]);
    let high = mat4x4<f32>(b[at + 4u * n], b[at + 5u * n], b[at + 6u * n], b[at + 7u * n]);
    return low * owed_scaled(k) + high * owed_scaled(k + 4u);
}
