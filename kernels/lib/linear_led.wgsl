// linear_led - the kernels linear_led and linear_led_lora without the shape, add_lanes() and what adapters add: a file and its tier choose.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/four_rows.wgsl
//!include lib/float_rows.wgsl
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
@group(0) @binding(3) var<storage, read> m : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y : array<f32>;

// Rows of W: one team's.
fn put_product(group : u32, id : u32) {
    let lane = id % LANES;
    let first = R * (group * (WG / LANES) + id / LANES);
    let own = p.rows - p.n_more;
    let sum = add_lanes(four_rows(four_from(first, p.rows), 0u, lane), id);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r < R && first + r < p.rows) {
            y[select(first + r, first + r + p.m_rows, first + r >= own)] = sum[r];
        }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    if (group < p.groups) {
        put_product(group, id);
        return;
    }
    let lane = id % M_LANES;
    let first = M_ROWS * ((group - p.groups) * (WG / M_LANES) + id / M_LANES);
    let mine = float_rows(four_from(first, p.m_rows), lane);
    let known = known_rows(first, lane);
    let sum = add_some(mine, M_ROWS, id, M_LANES);
    if (lane < M_ROWS && first + lane < p.m_rows) {
        y[p.rows - p.n_more + first + lane] = sum[lane];
    }
    add_known(known, first, lane, id);
}
