// a_row - a workgroup's share of z = A x: one row of A, a thread sixteen columns of it, which are on their way while x is made.
// Needs a_at(i), vec4 i of its rows of cols f32, and lib/lanes.
//!include lib/four.wgsl
fn a_columns(row : u32, i : u32) -> Four {
    let n = p.cols / 4u;
    if (i >= n) {
        return Four();
    }
    let at = row * n + i;
    return Four(a_at(at), a_at(at + 1u), a_at(at + 2u), a_at(at + 3u));
}

// The row times x, of which a thread has the same columns. No barrier is needed after an earlier sum.
fn a_row(mine : Four, x_mine : Four, id : u32) -> f32 {
    let part = (dot(mine.a, x_mine.a) + dot(mine.b, x_mine.b)) + (dot(mine.c, x_mine.c) + dot(mine.d, x_mine.d));
    workgroupBarrier();
    return add_some(vec4<f32>(part, 0.0, 0.0, 0.0), 1u, id, WG).x;
}
