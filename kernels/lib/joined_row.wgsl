// joined_row - a workgroup joins a row of the stream, a thread sixteen columns, to which it adds what the branch is owed. Needs what
// lib/columns and lib/owed need, and put_lacking(i, v) and lacking(i): room for vec4 i of a row in workgroup memory.
//!include lib/columns.wgsl
//!include lib/owed.wgsl
override OWED : u32 = 0u; // 1: the branch may be owed something

fn owed_z(i : u32) -> vec4<f32> {
    return branch[i];
}

fn owed_n() -> u32 {
    return p.cols / 4u;
}

// The whole workgroup takes part: what the branch is owed, to workgroup memory. A thread has four columns and, where there are so
// many, those 4 WG further. B is not in the caches, so as much as can be is on its way at once.
fn put_owed(id : u32) {
    let n = p.cols / 4u;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let i = id + 2u * WG * turn;
        if (i >= n) {
            break;
        }
        let more = owed_two(i, min(i + WG, n - 1u));
        put_lacking(i, more.a);
        if (i + WG < n) {
            put_lacking(i + WG, more.b);
        }
    }
    workgroupBarrier();
}

// The whole workgroup takes part: what the next block reads of columns 16 id ... of row tok. One of the workgroups writes the next
// state.
fn joined_row(tok : u32, id : u32, writes : bool) -> Four {
    let i = 4u * id;
    let at = tok * (p.cols / 4u) + i;
    let mine = i < p.cols / 4u;
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
        put_owed(id);
        if (mine) {
            raw = mixed(raw, Four(lacking(i), lacking(i + 1u), lacking(i + 2u), lacking(i + 3u)), 1.0, 1.0);
        }
    }
    c.b = times(raw, post);
    c.sums = (sums_of(c.v.a, raw.a, c.b.a) + sums_of(c.v.b, raw.b, c.b.b)) + (sums_of(c.v.c, raw.c, c.b.c) + sums_of(c.v.d, raw.d, c.b.d));
    let j = joining_from(c.sums, at, id);
    let state = next_state(c, j);
    if (mine && writes) {
        put_state(at, state);
    }
    return leading(c, j, state);
}
