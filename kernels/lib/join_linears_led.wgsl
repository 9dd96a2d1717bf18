// join_linears_led - the kernels join_linears_led and join_linears_mixed_led without their shapes and add_over(): a file and its tier choose.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/join_vectors.wgsl
//!include lib/joining.wgsl
//!include lib/held.wgsl
//!include lib/sixteens.wgsl
//!include lib/columns.wgsl
//!include lib/a_row.wgsl
//!include lib/put_ahead.wgsl
//!include lib/ahead.wgsl
//!include lib/led_rows.wgsl
//!include lib/four_rows.wgsl
//!include lib/three_rows.wgsl

struct Params {
    cols : u32,
    groups : u32, // workgroups that share the matrices; each of those after them takes a row of `more`
    has_branch : u32,
    has_scale : u32,
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    n_more : u32,
    rows : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    y_at : u32, // where results begin in y
    rank : u32, // of the adapters
    b_at : u32, // where theirs begin in b, see lib/led_rows.wgsl
    rows2 : u32,
    scales2 : u32,
    high2 : u32,
    d2 : u32,
    y_at2 : u32,
    rank2 : u32,
    b_at2 : u32,
    rows3 : u32,
    scales3 : u32,
    high3 : u32,
    d3 : u32,
    y_at3 : u32,
    rank3 : u32,
    b_at3 : u32,
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> w2 : array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> w3 : array<vec4<u32>>;
@group(0) @binding(7) var<storage, read> b : array<f32>;
@group(0) @binding(8) var<storage, read> more : array<vec4<f32>>;
@group(0) @binding(9) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(10) var<storage, read_write> y : array<f32>;

fn normed() -> bool {
    return true;
}

fn a_at(i : u32) -> vec4<f32> {
    return more[i];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    if (group >= p.groups + p.n_more) {
        return;
    }
    let i = 4u * id;
    let mine = i < p.cols / 4u;
    var of_a = Four();
    if (group >= p.groups) {
        of_a = a_columns(group - p.groups, i);
    }
    var c = Columns();
    if (mine) {
        c = columns(i, i);
    }
    ahead = joining_from(c.sums, i, id);
    let state = next_state(c, ahead);
    if (group >= p.groups) {
        let sum = a_row(of_a, state, id);
        if (id == 0u) {
            put_ahead(group - p.groups, sum);
        }
        return;
    }
    if (mine) {
        if (group == 0u) {
            put_state(i, state);
        }
        keep(i, leading(c, ahead, state));
    }
    workgroupBarrier();
    let lane = id % LANES;
    let part = three_rows(group * (WG / LANES) + id / LANES, lane);
    let first = part.first;
    let n_rows = of_three(p.rows, p.rows2, p.rows3);
    let added = led_rows(four_from(first, n_rows), n_rows, of_three(p.rank, p.rank2, p.rank3), of_three(p.b_at, p.b_at2, p.b_at3),
                             of_three(0u, p.rank, p.rank + p.rank2), lane);
    let sum = add_lanes(part.sum + added, id);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r >= R) {
            break;
        }
        if (first + r < n_rows) {
            y[of_three(p.y_at, p.y_at2, p.y_at3) + first + r] = sum[r];
        }
    }
}
