// merge_linear - the kernel of that name without its shape and add_lanes(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/held.wgsl
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
@group(0) @binding(1) var<storage, read> partial : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> y : array<f32>;

// Columns 4i .. 4i + 15 of all heads. The shares are added up one after the other, scaled by the largest top so far: so each
// is read once, and all loads can be on their way together.
fn merged(i : u32) -> Four {
    let n4 = p.head_dim / 4u;
    let share = n4 + 1u;
    let at = i / n4 * p.n_split * share;
    let col = at + i % n4;
    var sum = Four();
    var top = -3.0e38;
    var total = 0.0;
    for (var s = 0u; s < p.n_split * share; s += share) {
        let end = partial[at + s + n4]; // top and total
        let o = Four(partial[col + s], partial[col + s + 1u], partial[col + s + 2u], partial[col + s + 3u]);
        if (end.y > 0.0) { // a share without positions has no o
            let higher = max(top, end.x);
            let before = exp(top - higher);
            let now = exp(end.x - higher);
            sum = Four(before * sum.a + now * o.a, before * sum.b + now * o.b, before * sum.c + now * o.c,
                       before * sum.d + now * o.d);
            total = before * total + now * end.y;
            top = higher;
        }
    }
    return Four(sum.a / total, sum.b / total, sum.c / total, sum.d / total);
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
    for (var block = flat_group(wid, num); block * R * teams < p.rows; block += groups) {
        let first = R * (block * teams + id / LANES);
        let rows = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(p.rows - 1u));
        let sum = add_lanes(four_rows(rows, 0u, lane), id);
        for (var r = lane; r < R; r += LANES) {
            if (first + r < p.rows) {
                y[first + r] = sum[r];
            }
        }
        workgroupBarrier(); // before the next block's sum
    }
}
