// merge_linear_z - the kernel of that name without its shape and add_over(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/held.wgsl
//!include lib/merged.wgsl
//!include lib/a_row.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    rows : u32,
    groups : u32, // workgroups that share W; each of those after them takes a row of A
    head_dim : u32,
    n_split : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // rows of A
    z_at : u32, // where z begins in y
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> partial : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> a : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y : array<f32>;

fn a_at(i : u32) -> vec4<f32> {
    return a[i];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    let i = 4u * id;
    let mine = i < p.cols / 4u;
    if (group >= p.groups + p.rank) {
        return;
    }
    if (group >= p.groups) {
        let row = group - p.groups;
        let of_a = a_columns(row, i);
        var o = Four();
        if (mine) {
            o = merged(i);
        }
        let z = a_row(of_a, o, id);
        if (id == 0u) {
            y[p.z_at + row] = z;
        }
        return;
    }
    if (mine) {
        keep(i, merged(i));
    }
    workgroupBarrier();
    let lane = id % LANES;
    let first = R * (group * (WG / LANES) + id / LANES);
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
}
