// linear_digits_z - the kernel of that name without its shape and add_over(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/digits_four.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    rows : u32,
    groups : u32, // workgroups that share W; each of those after them takes a part of a row of A
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32,  // rows of A
    parts : u32, // of such a row
    z_at : u32,  // where they begin in y
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> a : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y : array<f32>;

// A thread's share of a part of a row of A times x: runs of sixteen columns.
fn a_share(row : u32, part : u32, id : u32) -> f32 {
    let runs = p.cols / 16u;
    let each = (runs + p.parts - 1u) / p.parts;
    var sum = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let of_part = id + turn * WG;
        let run = part * each + of_part;
        if (of_part >= each || run >= runs) {
            break;
        }
        let at = 4u * (row * runs + run);
        let v = digits_to_four(settled_at(0u, run));
        sum += a[at] * v.a + a[at + 1u] * v.b + a[at + 2u] * v.c + a[at + 3u] * v.d;
    }
    return across(sum);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    if (group >= p.groups + p.rank * p.parts) {
        return;
    }
    if (group >= p.groups) {
        let which = group - p.groups; // part after part
        let z = add_over(vec4<f32>(a_share(which % p.rank, which / p.rank, id), 0.0, 0.0, 0.0), id, WG).x;
        if (id == 0u) {
            y[p.z_at + which] = z;
        }
        return;
    }
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
