// held - where the products read an activation: from workgroup memory, in which each workgroup keeps
// what its block reads of the stream. Needs lib/joining, the buffer to, normed(): is the row kept as it is, or normed, and
// lead(i): columns 4i .. 4i + 3 of what a normed row is multiplied with.
//!include lib/settled.wgsl
override HELD : u32 = 512u; // vec4s of a row, rounded up to a multiple of 8

var<workgroup> held : array<vec4<u32>, HELD>;

// Lanes read at strides of 2 to 16 vec4s; in this order any eight neighbours hit different banks.
fn place(i : u32) -> u32 {
    return i ^ (((i >> 3u) ^ (i >> 4u)) & 7u);
}

fn x_at(i : u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(held[place(i)]);
}

fn settled_at(i : u32) -> Settled {
    return Settled(held[place(i)], held[place(i + 1u)], held[place(i + 2u)], held[place(i + 3u)]);
}

// Sixteen columns.
struct Four {
    a : vec4<f32>,
    b : vec4<f32>,
    c : vec4<f32>,
    d : vec4<f32>,
}

fn x_four(i : u32) -> Four {
    return Four(x[i], x[i + 1u], x[i + 2u], x[i + 3u]);
}

fn branch_four(i : u32) -> Four {
    return Four(branch[i], branch[i + 1u], branch[i + 2u], branch[i + 3u]);
}

fn post_four(i : u32) -> Four {
    return Four(post_of(i), post_of(i + 1u), post_of(i + 2u), post_of(i + 3u));
}

fn lead_four(i : u32) -> Four {
    return Four(lead(i), lead(i + 1u), lead(i + 2u), lead(i + 3u));
}

fn times(u : Four, v : Four) -> Four {
    return Four(u.a * v.a, u.b * v.b, u.c * v.c, u.d * v.d);
}

// f (u + r v)
fn mixed(u : Four, v : Four, r : f32, f : f32) -> Four {
    return Four(f * (u.a + r * v.a), f * (u.b + r * v.b), f * (u.c + r * v.c), f * (u.d + r * v.d));
}

fn keep(i : u32, s : Settled) {
    held[place(i)] = s.a;
    held[place(i + 1u)] = s.b;
    held[place(i + 2u)] = s.c;
    held[place(i + 3u)] = s.d;
}

// The whole workgroup takes part, a thread for sixteen columns: all that it reads is on its way at once and stays in
// registers. One of the workgroups that share a row writes its next state.
fn hold(tok : u32, id : u32, writes : bool) {
    let n = p.cols / 4u;
    let i = 4u * id;
    let at = tok * n + i;
    let mine = i < n;
    var v = Four();
    var b = Four();
    var w = Four();
    var sums = vec4<f32>();
    if (mine) {
        v = x_four(at);
        w = lead_four(i);
        if (p.has_branch != 0u) {
            let raw = branch_four(at);
            b = times(raw, post_four(i));
            sums = (sums_of(v.a, raw.a, b.a) + sums_of(v.b, raw.b, b.b)) + (sums_of(v.c, raw.c, b.c) + sums_of(v.d, raw.d, b.d));
        } else {
            sums.x = (dot(v.a, v.a) + dot(v.b, v.b)) + (dot(v.c, v.c) + dot(v.d, v.d));
        }
    }
    let j = joining_from(sums, at, id);
    if (mine) {
        v = mixed(v, b, j.r, j.factor);
        if (writes) {
            to[at] = v.a;
            to[at + 1u] = v.b;
            to[at + 2u] = v.c;
            to[at + 3u] = v.d;
        }
        if (normed()) {
            v = times(mixed(v, Four(), 0.0, j.inverse), w);
        }
        if (CODES) {
            keep(i, settle(v.a, v.b, v.c, v.d));
        } else {
            keep(i, Settled(bitcast<vec4<u32>>(v.a), bitcast<vec4<u32>>(v.b), bitcast<vec4<u32>>(v.c), bitcast<vec4<u32>>(v.d)));
        }
    }
    workgroupBarrier();
}
