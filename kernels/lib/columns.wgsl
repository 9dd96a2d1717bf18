// columns - sixteen columns of a row of the stream that follow each other, as what is settled must
// be: all that a thread reads is on its way at once and stays in registers. Needs lib/joining, the
// buffer to, normed(): is what follows normed, or the stream as it is, and lead(i): columns
// 4i .. 4i + 3 of what a normed row is multiplied with.

//!include lib/base.wgsl

fn x_four(i : u32) -> Sixteen {
    return Sixteen(x[i], x[i + 1u], x[i + 2u], x[i + 3u]);
}

fn branch_four(i : u32) -> Sixteen {
    return Sixteen(branch[i], branch[i + 1u], branch[i + 2u], branch[i + 3u]);
}

fn post_four(i : u32) -> Sixteen {
    return Sixteen(post_of(i), post_of(i + 1u), post_of(i + 2u), post_of(i + 3u));
}

fn lead_four(i : u32) -> Sixteen {
    return Sixteen(lead(i), lead(i + 1u), lead(i + 2u), lead(i + 3u));
}

struct Columns {
    v : Sixteen, // of the stream
    b : Sixteen, // of the branch, times post
    w : Sixteen, // lead
    sums : vec4<f32>,
}

// From vec4 i of the row on, which is vec4 `at` of the buffers.
fn columns(at : u32, i : u32) -> Columns {
    var c = Columns();
    c.v = x_four(at);
    c.w = lead_four(i);
    if (p.has_branch != 0u) {
        let raw = branch_four(at);
        c.b = times(raw, post_four(i));
        c.sums = (sums_of(c.v.a, raw.a, c.b.a) + sums_of(c.v.b, raw.b, c.b.b)) + (sums_of(c.v.c, raw.c, c.b.c) + sums_of(c.v.d, raw.d, c.b.d));
    } else {
        c.sums.x = square_sum(c.v);
    }
    return c;
}

fn next_state(c : Columns, j : Joining) -> Sixteen {
    return mixed(c.v, c.b, j.r, j.factor);
}

fn put_state(at : u32, state : Sixteen) {
    to[at] = state.a;
    to[at + 1u] = state.b;
    to[at + 2u] = state.c;
    to[at + 3u] = state.d;
}

// What the next block reads.
fn leading(c : Columns, j : Joining, state : Sixteen) -> Sixteen {
    if (normed()) {
        return times(mixed(state, Sixteen(), 0.0, j.inverse), c.w);
    }
    return state;
}
