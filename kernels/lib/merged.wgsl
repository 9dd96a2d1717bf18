// merged - attention's answer from the shares of attention_split. Needs p with head_dim and n_split, and the buffer partial; rank4(): vec4s of
// z = A o that a share has behind it, see lib/attend.

//!include lib/base.wgsl
var<private> z_merged : vec4<f32>; // of the head that the thread has columns of: vec4 (its sixteens before them) of z, where that is one

// Columns 4i .. 4i + 15 of all heads. The shares are added up one after the other, scaled by the largest top so far: so each
// is read once, and all loads can be on their way together.
fn merged(i : u32) -> Sixteen {
    let n4 = p.head_dim / 4u;
    let share = n4 + 1u + rank4();
    let at = i / n4 * p.n_split * share;
    let col = at + i % n4;
    let z_col = n4 + 1u + min(i % n4 / 4u, max(rank4(), 1u) - 1u);
    var sum = Sixteen();
    var z = vec4<f32>();
    var top = -3.0e38;
    var total = 0.0;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        if (turn >= p.n_split) {
            break;
        }
        let s = turn * share;
        let end = partial[at + s + n4]; // top and total
        let o = Sixteen(partial[col + s], partial[col + s + 1u], partial[col + s + 2u], partial[col + s + 3u]);
        var z_share = vec4<f32>();
        if (rank4() > 0u) {
            z_share = partial[at + s + z_col];
        }
        if (end.y > 0.0) { // a share without positions has no o
            let higher = max(top, end.x);
            let before = exp(top - higher);
            let now = exp(end.x - higher);
            sum = Sixteen(before * sum.a + now * o.a, before * sum.b + now * o.b, before * sum.c + now * o.c,
                       before * sum.d + now * o.d);
            z = before * z + now * z_share;
            total = before * total + now * end.y;
            top = higher;
        }
    }
    z_merged = z / total;
    return Sixteen(sum.a / total, sum.b / total, sum.c / total, sum.d / total);
}
