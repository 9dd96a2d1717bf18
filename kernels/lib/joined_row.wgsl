// joined_row - a workgroup joins a row of the stream, a thread sixteen columns, to which it adds what the branch is owed. Needs what
// lib/columns and lib/owed need, and put_lacking(i, v) and lacking(i): room for vec4 i of a row in workgroup memory.
//!include lib/columns.wgsl
//!include lib/owed.wgsl
//!include lib/turns.wgsl
override OWED : u32 = 0u; // 1: the branch may be owed something

fn owed_z(i : u32) -> vec4<f32> {
    return branch[i];
}

fn b_four(i : u32) -> Four {
    return Four(b[i], b[i + apart4()], b[i + 2u * apart4()], b[i + 3u * apart4()]);
}

// f u + g v + h w + i x
fn sum_four(u : Four, v : Four, w : Four, x : Four, f : vec4<f32>) -> Four {
    return Four(f.x * u.a + f.y * v.a + f.z * w.a + f.w * x.a, f.x * u.b + f.y * v.b + f.z * w.b + f.w * x.b,
                f.x * u.c + f.y * v.c + f.z * w.c + f.w * x.c, f.x * u.d + f.y * v.d + f.z * w.d + f.w * x.d);
}

// A thread's columns, from vec4 i on, of s B z, over k from `start` up to `end`, multiples of four. B is not in the caches, so as much as can be is
// on its way at once.
fn owed_columns(i : u32, start : u32, end : u32) -> Four {
    var sum = Four();
    let n = p.cols / 4u;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = start + 8u * turn;
        if (k >= end) {
            break;
        }
        let at = k * n + i;
        let too = select(at, at + 4u * n, k + 4u < end); // past the end something is read that does not count
        let b0 = b_four(at);
        let b1 = b_four(at + n);
        let b2 = b_four(at + 2u * n);
        let b3 = b_four(at + 3u * n);
        let b4 = b_four(too);
        let b5 = b_four(too + n);
        let b6 = b_four(too + 2u * n);
        let b7 = b_four(too + 3u * n);
        let low = owed_four(k);
        let high = select(vec4<f32>(), owed_four(min(k + 4u, p.owed_rank - 4u)), vec4<bool>(k + 4u < end));
        sum = mixed(sum, mixed(sum_four(b0, b1, b2, b3, low), sum_four(b4, b5, b6, b7, high), 1.0, 1.0), 1.0, 1.0);
    }
    return sum;
}

// The whole workgroup takes part. Where it has two threads for sixteen columns, each takes a half of k.
fn owed_branch(id : u32) -> Four {
    let n = p.cols / 4u;
    let two = p.cols <= 8u * WG;
    let threads = select(WG, WG / 2u, two);
    let column = id & (threads - 1u);
    let i = first4(column);
    let there = column < n / 4u;
    let second = id >= threads;
    let half = p.owed_rank / 2u;
    var sum = Four();
    if (there) {
        sum = owed_columns(i, select(0u, half, second), select(p.owed_rank, half, two && !second));
    }
    if (two) {
        if (second && there) {
            put_lacking(i, sum.a);
            put_lacking(i + apart4(), sum.b);
            put_lacking(i + 2u * apart4(), sum.c);
            put_lacking(i + 3u * apart4(), sum.d);
        }
        workgroupBarrier();
        if (!second && there) {
            sum = mixed(sum, Four(lacking(i), lacking(i + apart4()), lacking(i + 2u * apart4()), lacking(i + 3u * apart4())), 1.0, 1.0);
        }
    }
    return sum;
}

// Sixteen columns of the stream, and what the next block reads of them.
struct Joined {
    state : Four,
    h : Four,
}

// The whole workgroup takes part, a thread for sixteen columns of row tok. One of the workgroups writes the next state.
fn joined_row(tok : u32, id : u32, writes : bool) -> Joined {
    let i = first4(id);
    let at = tok * (p.cols / 4u) + i;
    let mine = id < p.cols / 16u;
    // All that is read is on its way before anything is waited for.
    var c = Columns();
    var raw = Four();
    var post = Four();
    if (mine) {
        c.v = x_four(at);
        c.w = lead_four(i);
        if (p.has_branch != 0u) {
            raw = branch_four(at);
            post = post_four(i);
        }
    }
    if (OWED == 1u) {
        let more = owed_branch(id);
        if (mine) {
            raw = mixed(raw, more, 1.0, 1.0);
        }
    }
    c.b = times(raw, post);
    c.sums = (sums_of(c.v.a, raw.a, c.b.a) + sums_of(c.v.b, raw.b, c.b.b)) + (sums_of(c.v.c, raw.c, c.b.c) + sums_of(c.v.d, raw.d, c.b.d));
    let j = joining_from(c.sums, at, id);
    let state = next_state(c, j);
    if (mine && writes) {
        put_state(at, state);
    }
    return Joined(state, leading(c, j, state));
}
