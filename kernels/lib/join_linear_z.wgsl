// join_linear_z - the kernel of that name without its shape and add_over(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/join_vectors.wgsl
//!include lib/joining.wgsl
//!include lib/held.wgsl
//!include lib/joined_row.wgsl
//!include lib/a_row.wgsl
//!include lib/put_ahead.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    rows : u32,
    groups : u32, // workgroups that share W; each of those after them takes a row of A
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    has_branch : u32,
    has_scale : u32,
    has_next : u32,
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    rank : u32, // rows of A
    more : u32, // rows behind those, see lib/ahead.wgsl
    z_at : u32, // where z begins in y
    owed_rank : u32, // see lib/owed.wgsl
    owed_at : u32,
    owed_parts : u32,
    owed_scales : u32,
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> b : array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> a : array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> y : array<f32>;

fn put_lacking(i : u32, v : vec4<f32>) {
    held[i] = bitcast<vec4<u32>>(v);
}

fn lacking(i : u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(held[i]);
}

fn normed() -> bool {
    return p.has_next != 0u;
}

fn a_at(i : u32) -> vec4<f32> {
    return a[i];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    if (group >= p.groups + p.rank + p.more) {
        return;
    }
    var of_a = Four();
    if (group >= p.groups) {
        of_a = a_columns(group - p.groups, 4u * id);
    }
    let row = joined_row(0u, id, group == 0u);
    if (group >= p.groups + p.rank) {
        let z = a_row(of_a, row.state, id);
        if (id == 0u) {
            put_ahead(group - p.groups - p.rank, z);
        }
        return;
    }
    if (group >= p.groups) {
        let z = a_row(of_a, row.h, id);
        if (id == 0u) {
            y[p.z_at + group - p.groups] = z;
        }
        return;
    }
    if (4u * id < p.cols / 4u) {
        keep(4u * id, row.h);
    }
    workgroupBarrier();
    // The workgroups take the teams' rows in turn, so that few of them join.
    let teams = WG / LANES;
    let lane = id % LANES;
    for (var i = 0u; i < MOST_TURNS; i++) {
        let block = group + i * p.groups;
        if (block * R * teams >= p.rows) {
            break;
        }
        let first = R * (block * teams + id / LANES);
        let rows = four_from(first, p.rows);
        let sum = add_lanes(four_rows(rows, 0u, lane), id);
        for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
            let r = lane + k * LANES;
            if (r >= R) {
                break;
            }
            if (first + r < p.rows) {
                y[first + r] = sum[r];
            }
        }
        workgroupBarrier(); // before the next block's sum
    }
}
