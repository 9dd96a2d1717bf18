// join_gelu_led - the kernels join_gelu_led and join_gelu_mixed_led without their shapes and add_over(): a file and its tier choose.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/gelu.wgsl
//!include lib/joining.wgsl
//!include lib/held.wgsl
//!include lib/sixteens.wgsl
//!include lib/joined_row.wgsl
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
    n_more : u32,    // MERGED: rows of w4 after those of y
    owed_rank : u32, // see lib/owed.wgsl
    owed_at : u32,
    owed_parts : u32,
    owed_scales : u32,
    owed_b : u32, // where B lies in w4, in vec4s
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

fn put_lacking(i : u32, v : vec4<f32>) {
    held[i] = bitcast<vec4<u32>>(v);
}

fn lacking(i : u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(held[i]);
}

fn b_at(i : u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(w4[p.owed_b + i]);
}

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

// The thread's columns of a row of w4, where that is floats; past the last row of that.
fn float_columns(row : u32, id : u32) -> Four {
    if (id >= p.cols / 16u) {
        return Four();
    }
    let at = min(row, p.rows4 + p.n_more - 1u) * (p.cols / 4u) + first4(id);
    return Four(bitcast<vec4<f32>>(w4[at]), bitcast<vec4<f32>>(w4[at + 1u]), bitcast<vec4<f32>>(w4[at + 2u]), bitcast<vec4<f32>>(w4[at + 3u]));
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

// Four rows of a matrix of floats, which are on their way while the row is joined.
fn float_gate(group : u32, id : u32) {
    let first = 4u * group;
    let r0 = float_columns(first, id);
    let r1 = float_columns(first + 1u, id);
    let r2 = float_columns(first + 2u, id);
    let r3 = float_columns(first + 3u, id);
    let v = joined_row(0u, id, group == 0u).state;
    workgroupBarrier(); // before the next sum
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

// Those of the other matrices, which these workgroups take in turn.
fn heads(group : u32, id : u32) {
    let lane = id % LANES;
    let teams = WG / LANES;
    let of_each = n_teams();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let block = group + turn * (p.n_groups - p.gate_groups);
        if (block * teams >= of_each.x + of_each.y + of_each.z) {
            break;
        }
        let part = three_rows(block * teams + id / LANES, lane);
        let n_rows = of_three(p.rows, p.rows2, p.rows3);
        let before = of_three(0u, p.rows, p.rows + p.rows2);
        let sum = add_lanes(part.sum, id);
        for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
            let r = lane + k * LANES;
            if (r < R && part.first + r < n_rows) {
                put_ahead(before + part.first + r, sum[r]);
            }
        }
        workgroupBarrier(); // before the next sum
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
    let i = first4(id);
    let mine = i < p.cols / 4u;
    var next = Four(vec4<f32>(1.0), vec4<f32>(1.0), vec4<f32>(1.0), vec4<f32>(1.0));
    if (mine && !gates) {
        next = lead_four(i);
    }
    let state = joined_row(0u, id, group == 0u).state;
    if (mine) {
        keep(i, times(state, next));
    }
    workgroupBarrier();
    if (gates) {
        coded_gate(group, id);
    } else {
        heads(group - p.gate_groups, id);
    }
}
