// merge_linear - the kernel of that name without its shape and add_lanes(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/held.wgsl
//!include lib/merged.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    rows : u32,
    head_dim : u32,
    n_split : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind partial read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind y update array<f32>

fn rank4() -> u32 {
    return 0u;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    if (4u * id < p.cols / 4u) {
        keep(4u * id, merged(4u * id));
    }
    workgroupBarrier();
    // The workgroups take the rows in turn, so that few of them merge.
    let teams = WG / LANES;
    let groups = num.x * num.y;
    let lane = id % LANES;
    for (var i = 0u; i < MOST_TURNS; i++) {
        let block = flat_group(wid, num) + i * groups;
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
