// linear_led - the kernels linear_led and linear_led_lora without the shape, add_lanes() and what adapters add: a file and its tier choose.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/four_rows.wgsl
//!include lib/shorts.wgsl
struct Params {
    cols : u32,
    rows : u32,
    groups : u32, // workgroups that share W; those after them share M
    m_rows : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    n_more : u32,      // from here on with adapters: rows of W whose results come last
    stream_cols : u32, // those of `stream`, behind which what is added to and z lie
    rows_q : u32,      // of M, by matrix
    rows_k : u32,
    rank : u32, // of their adapters
    rank2 : u32,
    rank3 : u32,
    b_at : u32, // where theirs begin in b, see lib/led_rows.wgsl
    b_at2 : u32,
    b_at3 : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> m : array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> y : array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    let teams = WG / LANES;
    let lane = id % LANES;
    let of_m = group >= p.groups;
    let first = R * (select(group, group - p.groups, of_m) * teams + id / LANES);
    let n_rows = select(p.rows, p.m_rows, of_m);
    let rows = four_from(first, n_rows);
    var mine = vec4<f32>();
    if (of_m) {
        mine = shorts_rows(rows, lane);
    } else {
        mine = four_rows(rows, 0u, lane);
    }
    let sum = add_lanes(mine, id);
    if (of_m) {
        add_known(first, lane, id);
    }
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        let row = first + r;
        if (r >= R || row >= n_rows) {
            break;
        }
        let own = p.rows - p.n_more;
        if (of_m) {
            y[own + row] = sum[r] * shorts_scale(row);
        } else {
            y[select(row, row + p.m_rows, row >= own)] = sum[r];
        }
    }
}
