// dot_q4_k - a lane's unit is a group, one vec4 of nibbles; eight lanes share a header.
//!include lib/shape_q4_k.wgsl
//!include lib/nibbles.wgsl
//!include lib/acts32.wgsl

// Rows are whole blocks. What depends on u alone is the same for all rows of a team.
fn unit_dot(at : u32, u : u32, v : Acts) -> f32 {
    let row = 9u * (at >> 3u);
    let head = 9u * (u >> 3u);
    let q = w_at(row + (head + 1u + (u & 7u)));
    let m = affine_group(w_at(row + head), u & 7u);
    return m.x * (dot16(low_nibbles(q), 0.0, v.a) + dot16(high_nibbles(q), 0.0, v.b)) - m.y * (v.a.sum + v.b.sum);
}
