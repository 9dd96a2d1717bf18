// join_linear_led - the kernel of that name without its shape and add_over(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/join_vectors.wgsl
//!include lib/joining.wgsl
//!include lib/held.wgsl
//!include lib/columns.wgsl
//!include lib/a_row.wgsl
//!include lib/put_ahead.wgsl
//!include lib/ahead.wgsl
//!include lib/led_rows.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    rows : u32,
    groups : u32, // workgroups that share W; each of those after them takes a row of `more`
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    has_branch : u32,
    has_scale : u32,
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    rank : u32, // of the adapters, see lib/lora.wgsl
    b_scales : u32,
    n_more : u32,
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> b : array<f32>;
@group(0) @binding(6) var<storage, read> more : array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> y : array<f32>;

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
    let first = R * (group * (WG / LANES) + id / LANES);
    let rows = four_from(first, p.rows);
    let sum = add_lanes(four_rows(rows, 0u, lane) + adapted(rows, lane), id);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r >= R) {
            break;
        }
        if (first + r < p.rows) {
            y[first + r] = sum[r];
        }
    }
}
