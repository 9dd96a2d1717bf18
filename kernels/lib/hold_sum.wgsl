// hold_sum - as hold, where the branch is the sum of two:  norm(branch) branch_w + norm(other) other_w. The other lies in the
// same buffer. Needs lib/hold, p with other_at (in vec4s, as the places in vectors), branch_w_at and other_w_at, and the buffer vectors.
fn vector_four(i : u32) -> Four {
    return Four(vectors[i], vectors[i + 1u], vectors[i + 2u], vectors[i + 3u]);
}

// f u + g v
fn sum_of(u : Four, f : f32, v : Four, g : f32) -> Four {
    return Four(f * u.a + g * v.a, f * u.b + g * v.b, f * u.c + g * v.c, f * u.d + g * v.d);
}

fn hold_sum(tok : u32, id : u32, writes : bool) {
    let n = p.cols / 4u;
    let i = 4u * id;
    let at = tok * n + i;
    let mine = i < n;
    // All that is read is on its way before anything is waited for.
    var c = Columns();
    var post = Four();
    var one = Four();
    var two = Four();
    var squares = vec2<f32>();
    if (mine) {
        c.v = x_four(at);
        c.w = lead_four(i);
        post = post_four(i);
        one = branch_four(at);
        two = branch_four(p.other_at + at);
        squares = vec2<f32>(square(one), square(two));
        one = times(one, vector_four(p.branch_w_at + i));
        two = times(two, vector_four(p.other_w_at + i));
    }
    let mean = add_some(vec4<f32>(squares, 0.0, 0.0), 2u, id, WG) / f32(p.cols);
    let inverse = inverseSqrt(mean + p.eps);
    workgroupBarrier(); // before the next sum
    let raw = sum_of(one, inverse.x, two, inverse.y);
    c.b = times(raw, post);
    c.sums = (sums_of(c.v.a, raw.a, c.b.a) + sums_of(c.v.b, raw.b, c.b.b)) + (sums_of(c.v.c, raw.c, c.b.c) + sums_of(c.v.d, raw.d, c.b.d));
    let j = joining_from(c.sums, at, id);
    if (mine) {
        let state = next_state(c, j);
        if (writes) {
            put_state(at, state);
        }
        keep(i, leading(c, j, state));
    }
    workgroupBarrier();
}
