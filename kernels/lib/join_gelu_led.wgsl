// join_gelu_led - the kernels join_gelu_led and join_gelu_mixed_led without their shapes and add_over(): a file and its tier choose.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/gelu.wgsl
//!include lib/joining.wgsl
//!include lib/held.wgsl
//!include lib/sixteens.wgsl
//!include lib/columns.wgsl
//!include lib/put_ahead.wgsl
//!include lib/four_rows.wgsl
//!include lib/three_rows.wgsl
override MERGED : u32 = 0u; // 1: w4 is floats, with more rows behind those of y

struct Params {
    cols : u32,
    gate_groups : u32, // workgroups that share w4; those after them share the others
    n_groups : u32,    // all
    by_col : u32,      // column of `by` that meets column 0 of y
    has_branch : u32,
    post_at : u32, // in vectors, in vec4s
    next_at : u32,
    rows : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rows2 : u32,
    scales2 : u32,
    high2 : u32,
    d2 : u32,
    rows3 : u32,
    scales3 : u32,
    high3 : u32,
    d3 : u32,
    rows4 : u32,
    scales4 : u32,
    high4 : u32,
    d4 : u32,
    n_more : u32, // MERGED: rows of w4 after those of y
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> w2 : array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> w3 : array<vec4<u32>>;
@group(0) @binding(7) var<storage, read> w4 : array<vec4<u32>>;
@group(0) @binding(8) var<storage, read> by : array<f32>;
@group(0) @binding(9) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(10) var<storage, read_write> y : array<f32>;

fn post_of(i : u32) -> vec4<f32> {
    return vectors[p.post_at + i];
}

fn factor() -> f32 {
    return 1.0;
}

fn normed() -> bool {
    return false;
}

fn lead(i : u32) -> vec4<f32> {
    return vectors[p.next_at + i];
}

// Where floats are read, a thread's columns are four in each quarter of the row, so that neighbours read what lies together.
fn quarter(id : u32, k : u32) -> u32 {
    return id + k * (p.cols / 16u);
}

// The thread's columns of a row of w4, where that is floats; past the last row of that.
fn float_columns(row : u32, id : u32) -> Four {
    if (id >= p.cols / 16u) {
        return Four();
    }
    let at = min(row, p.rows4 + p.n_more - 1u) * (p.cols / 4u);
    return Four(bitcast<vec4<f32>>(w4[at + quarter(id, 0u)]), bitcast<vec4<f32>>(w4[at + quarter(id, 1u)]),
                bitcast<vec4<f32>>(w4[at + quarter(id, 2u)]), bitcast<vec4<f32>>(w4[at + quarter(id, 3u)]));
}

// Those of the stream, which others have put into workgroup memory as it is.
fn state_at(i : u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(held[i]);
}

fn state_columns(id : u32) -> Four {
    if (id >= p.cols / 16u) {
        return Four();
    }
    return Four(state_at(quarter(id, 0u)), state_at(quarter(id, 1u)), state_at(quarter(id, 2u)), state_at(quarter(id, 3u)));
}

fn dot_four(u : Four, v : Four) -> f32 {
    return (dot(u.a, v.a) + dot(u.b, v.b)) + (dot(u.c, v.c) + dot(u.d, v.d));
}

fn put_gate(row : u32, h : f32) {
    if (row < p.rows4) {
        y[row] = gelu(h) * by[p.by_col + row];
    } else if (row < p.rows4 + p.n_more) {
        put_ahead(p.rows + p.rows2 + p.rows3 + row - p.rows4, h);
    }
}

// The stream joins; one workgroup writes its next state.
struct Stream {
    state : Four,
    next : Four, // what it is multiplied with for the next block
}

fn join_stream(id : u32, writes : bool) -> Stream {
    let i = first4(id);
    let mine = i < p.cols / 4u;
    var c = Columns();
    if (mine) {
        c = columns(i, i);
    }
    let state = next_state(c, joining_from(c.sums, i, id));
    if (mine && writes) {
        put_state(i, state);
    }
    return Stream(state, c.w);
}

// Four rows of a matrix of floats, which are on their way while the row is joined.
fn float_gate(group : u32, id : u32) {
    let first = 4u * group;
    let r0 = float_columns(first, id);
    let r1 = float_columns(first + 1u, id);
    let r2 = float_columns(first + 2u, id);
    let r3 = float_columns(first + 3u, id);
    let state = join_stream(id, group == 0u).state;
    let i = first4(id);
    if (i < p.cols / 4u) {
        held[i] = bitcast<vec4<u32>>(state.a);
        held[i + 1u] = bitcast<vec4<u32>>(state.b);
        held[i + 2u] = bitcast<vec4<u32>>(state.c);
        held[i + 3u] = bitcast<vec4<u32>>(state.d);
    }
    workgroupBarrier(); // and before the next sum
    let v = state_columns(id);
    let sums = add_over(vec4<f32>(dot_four(r0, v), dot_four(r1, v), dot_four(r2, v), dot_four(r3, v)), id, WG);
    if (id < 4u) {
        put_gate(first + id, sums[id]);
    }
}

// The teams' rows of a matrix of codes.
fn coded_gate(group : u32, id : u32) {
    let lane = id % LANES;
    let first = R * (group * (WG / LANES) + id / LANES);
    which = 3u;
    let sum = add_lanes(four_rows(four_from(first, p.rows4), 0u, lane), id);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r < R) {
            put_gate(first + r, sum[r]);
        }
    }
}

// Those of the other matrices.
fn heads(group : u32, id : u32) {
    let lane = id % LANES;
    let part = three_rows(group * (WG / LANES) + id / LANES, lane);
    let n_rows = of_three(p.rows, p.rows2, p.rows3);
    let before = of_three(0u, p.rows, p.rows + p.rows2);
    let sum = add_lanes(part.sum, id);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r < R && part.first + r < n_rows) {
            put_ahead(before + part.first + r, sum[r]);
        }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    if (group >= p.n_groups) {
        return;
    }
    let gates = group < p.gate_groups;
    if (MERGED == 1u && gates) {
        float_gate(group, id);
        return;
    }
    let stream = join_stream(id, group == 0u);
    let i = first4(id);
    if (i < p.cols / 4u) {
        if (gates) {
            keep(i, stream.state);
        } else {
            keep(i, times(stream.state, stream.next));
        }
    }
    workgroupBarrier();
    if (gates) {
        coded_gate(group, id);
    } else {
        heads(group - p.gate_groups, id);
    }
}
