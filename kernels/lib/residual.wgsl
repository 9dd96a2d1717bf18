// residual - the residual, to = (x + norm(branch) post) factor, and what the next block reads of
// it, norm(to) next, with norm(v) = v / rms(v). Needs Params with cols, has_branch and eps, the
// buffers x and branch, and lib/lanes.
//
// axis vectors  one: post, factor and next lie in the buffer `vectors`
//               each: in buffers of their own, with the Params of residual_norm*
//               own: the kernel has post_of(i) and next_of(i), columns 4i .. 4i + 3 of each, and
//               factor()
//
// Needs normed(): does the next block read the norm, or the residual itself?

//!include lib/base.wgsl

//!if vectors == one
fn post_of(i : u32) -> vec4<f32> {
    return vectors[p.post_at + i];
}

fn factor() -> f32 {
    if (p.has_scale != 0u) {
        return vectors[p.scale_at].x;
    }
    return 1.0;
}

fn next_of(i : u32) -> vec4<f32> {
    return vectors[p.next_at + i];
}
//!elif vectors == each
struct Params {
    rows : u32,
    cols : u32,
    has_branch : u32,
    has_scale : u32,
    has_next : u32,
    puts : u32,    // y is wanted
    makes_ready : u32, // s is wanted
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind branch read array<vec4<f32>>
//!bind post read array<vec4<f32>>
//!bind scale read array<f32>
//!bind next_w read array<vec4<f32>>
//!bind to update array<vec4<f32>>
//!bind y update array<vec4<f32>>

fn post_of(i : u32) -> vec4<f32> {
    return post[i];
}

fn factor() -> f32 {
    if (p.has_scale != 0u) {
        return scale[0];
    }
    return 1.0;
}
//!end

// One pass gives all sums, since  |to|^2 = factor^2 (|x|^2 + 2 r x.b + r^2 |b|^2)  with
// b = branch post  and  r = 1 / rms(branch).
struct Residual {
    at : u32,      // of the row
    r : f32,       // 1 / rms(branch)
    factor : f32,
    inverse : f32, // 1 / rms(to)
}

// Four columns' part of the sums; b = raw post.
fn sums_of(v : vec4<f32>, raw : vec4<f32>, b : vec4<f32>) -> vec4<f32> {
    return vec4<f32>(dot(v, v), dot(v, b), dot(b, b), dot(raw, raw));
}

// From every thread's sums.
fn residual_from(sums : vec4<f32>, at : u32, id : u32) -> Residual {
    let f = factor(); // on its way while all wait for the sums
    let mean = add_over(sums, id, WG) / f32(p.cols);
    let r = inverseSqrt(mean.w + p.eps);
    let square = max(mean.x + 2.0 * r * mean.y + r * r * mean.z, 0.0);
    return Residual(at, r, f, inverseSqrt(f * f * square + p.eps));
}

// The part of columns 4i .. 4i + 3 of the row in the sums; past its end 0.
fn sums_at(at : u32, i : u32) -> vec4<f32> {
    let n = p.cols / 4u;
    let k = min(i, n - 1u);
    let v = x[at + k];
    var sums = vec4<f32>(dot(v, v), 0.0, 0.0, 0.0);
    if (p.has_branch != 0u) {
        let raw = branch[at + k];
        sums = sums_of(v, raw, raw * post_of(k));
    }
    return select(vec4<f32>(), sums, vec4<bool>(i < n));
}

// Four loads of each are on their way at a time.
fn read_residual(at : u32, id : u32) -> Residual {
    var sums = vec4<f32>();
    for (var i = id; i < p.cols / 4u; i += 4u * WG) {
        sums += (sums_at(at, i) + sums_at(at, i + WG)) +
            (sums_at(at, i + 2u * WG) + sums_at(at, i + 3u * WG));
    }
    return residual_from(sums, at, id);
}

fn residual_at(j : Residual, i : u32) -> vec4<f32> {
    var v = x[j.at + i];
    if (p.has_branch != 0u) {
        v += branch[j.at + i] * j.r * post_of(i);
    }
    return v * j.factor;
}

// ---- sixteen columns a thread: all is on its way at once, and stays in registers ----

fn x_four(i : u32) -> Sixteen {
    return Sixteen(x[i], x[i + 1u], x[i + 2u], x[i + 3u]);
}

fn branch_four(i : u32) -> Sixteen {
    return Sixteen(branch[i], branch[i + 1u], branch[i + 2u], branch[i + 3u]);
}

fn post_four(i : u32) -> Sixteen {
    return Sixteen(post_of(i), post_of(i + 1u), post_of(i + 2u), post_of(i + 3u));
}

fn next_four(i : u32) -> Sixteen {
    return Sixteen(next_of(i), next_of(i + 1u), next_of(i + 2u), next_of(i + 3u));
}

struct Columns {
    v : Sixteen, // of x
    b : Sixteen, // of the branch, times post
    w : Sixteen, // next
    sums : vec4<f32>,
}

// From vec4 i of the row on, which is vec4 `at` of the buffers.
fn columns(at : u32, i : u32) -> Columns {
    var c = Columns();
    c.v = x_four(at);
    c.w = next_four(i);
    if (p.has_branch != 0u) {
        let raw = branch_four(at);
        c.b = times(raw, post_four(i));
        c.sums =
            (sums_of(c.v.a, raw.a, c.b.a) + sums_of(c.v.b, raw.b, c.b.b)) +
            (sums_of(c.v.c, raw.c, c.b.c) + sums_of(c.v.d, raw.d, c.b.d));
    } else {
        c.sums.x = square_sum(c.v);
    }
    return c;
}

fn next_state(c : Columns, j : Residual) -> Sixteen {
    return mixed(c.v, c.b, j.r, j.factor);
}

fn put_state(at : u32, state : Sixteen) {
    to[at] = state.a;
    to[at + 1u] = state.b;
    to[at + 2u] = state.c;
    to[at + 3u] = state.d;
}

// What the next block reads.
fn block_input(c : Columns, j : Residual, state : Sixteen) -> Sixteen {
    if (normed()) {
        return times(mixed(state, Sixteen(), 0.0, j.inverse), c.w);
    }
    return state;
}

// The residual of a row that fits the registers of a workgroup, in RUNS runs of sixteen columns a
// thread. Needs override RUNS, 1 or 2, and finish(i, c, j): what becomes of the columns from vec4 i
// of the row on.
fn residual_row(row : u32, id : u32) {
    let n = p.cols / 4u;
    let i = 4u * id;
    let k = 4u * (id + WG);
    var c = Columns();
    var d = Columns();
    if (i < n) {
        c = columns(row * n + i, i);
    }
    if (RUNS > 1u && k < n) {
        d = columns(row * n + k, k);
    }
    let j = residual_from(c.sums + d.sums, row * n, id);
    if (i < n) {
        finish(i, c, j);
    }
    if (RUNS > 1u && k < n) {
        finish(k, d, j);
    }
}

// A workgroup computes the residual and keeps what the next block reads as its shared row. The
// whole workgroup takes part, a thread for sixteen columns. `writes`: it also stores the residual,
// which one of the workgroups of a row does.
fn share_row(tok : u32, id : u32, writes : bool) {
    let n = p.cols / 4u;
    let i = 4u * id;
    let at = tok * n + i;
    let mine = i < n;
    var c = Columns();
    if (mine) {
        c = columns(at, i);
    }
    let j = residual_from(c.sums, at, id);
    if (mine) {
        let state = next_state(c, j);
        if (writes) {
            put_state(at, state);
        }
        keep(i, block_input(c, j, state));
    }
    workgroupBarrier();
}
