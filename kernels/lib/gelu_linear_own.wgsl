// gelu_linear_own - the kernel of that name without its shape and add_over(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/gelu.wgsl
//!include lib/owed.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    rows : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    by_col : u32,    // column of `by` that meets column 0 of g, a multiple of 4
    owed_rank : u32, // of g, see lib/owed.wgsl
    owed_at : u32,
    owed_parts : u32,
    owed_scales : u32,
    rank : u32,     // of the adapters of W, 0: none
    b_scales : u32, // in b2
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> g : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> by : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> a : array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> b2 : array<f32>;
@group(0) @binding(7) var<storage, read_write> y : array<f32>;

const MOST : u32 = 256u;   // vec4s of a row
const AT_ONCE : u32 = 8u;  // lanes that share a row of A
var<workgroup> held : array<vec4<f32>, MOST>;
var<workgroup> own : array<f32, 256>;

fn owed_z(i : u32) -> vec4<f32> {
    return g[i];
}

fn owed_n() -> u32 {
    return p.cols / 4u;
}

fn x_at(i : u32) -> vec4<f32> {
    return held[i];
}

// Vec4 i of row k of A; nothing past the end.
fn a_at(k : u32, i : u32) -> vec4<f32> {
    let n = p.cols / 4u;
    return select(vec4<f32>(), a[min(k, p.rank - 1u) * n + min(i, n - 1u)], vec4<bool>(i < n && k < p.rank));
}

// Eight vec4s of a lane.
struct Eights {
    low : mat4x4<f32>,
    high : mat4x4<f32>,
}

fn a_eights(k : u32, i : u32) -> Eights {
    return Eights(mat4x4<f32>(a_at(k, i), a_at(k, i + AT_ONCE), a_at(k, i + 2u * AT_ONCE), a_at(k, i + 3u * AT_ONCE)),
                  mat4x4<f32>(a_at(k, i + 4u * AT_ONCE), a_at(k, i + 5u * AT_ONCE), a_at(k, i + 6u * AT_ONCE), a_at(k, i + 7u * AT_ONCE)));
}

fn times_held(e : Eights, i : u32) -> f32 {
    let most = MOST - 1u;
    let low = e.low[0] * held[min(i, most)] + e.low[1] * held[min(i + AT_ONCE, most)] + e.low[2] * held[min(i + 2u * AT_ONCE, most)] +
              e.low[3] * held[min(i + 3u * AT_ONCE, most)];
    let high = e.high[0] * held[min(i + 4u * AT_ONCE, most)] + e.high[1] * held[min(i + 5u * AT_ONCE, most)] +
               e.high[2] * held[min(i + 6u * AT_ONCE, most)] + e.high[3] * held[min(i + 7u * AT_ONCE, most)];
    let sum = low + high;
    return (sum.x + sum.y) + (sum.z + sum.w);
}

// Column k of B2 for four rows; nothing past the end.
fn b2_at(rows : vec4<u32>, k : u32) -> vec4<f32> {
    let at = rows + min(k, p.rank - 1u) * p.rows;
    return select(vec4<f32>(), vec4<f32>(b2[at.x], b2[at.y], b2[at.z], b2[at.w]), vec4<bool>(k < p.rank));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let n = p.cols / 4u;
    let lane = id % LANES;
    let first = R * (flat_group(wid, num) * (WG / LANES) + id / LANES);
    let rows = four_from(first, p.rows);
    // What does not wait for the row is on its way while it is made: the first rows of A, and what meets A of it.
    let k0 = id / AT_ONCE;
    let start = id % AT_ONCE;
    var of_a = Eights();
    var factor = 0.0;
    var b0 = vec4<f32>();
    var b1 = vec4<f32>();
    if (p.rank > 0u) {
        of_a = a_eights(k0, start);
        factor = b2[p.b_scales + min(k0, p.rank - 1u)];
        b0 = b2_at(rows, lane);
        b1 = b2_at(rows, lane + LANES);
    }
    for (var turn = 0u; turn < (MOST + WG - 1u) / WG; turn++) {
        let i = id + turn * WG;
        if (i >= n) {
            break;
        }
        held[i] = gelu_tanh(g[i] + owed_vec(i)) * by[p.by_col / 4u + i];
    }
    for (var turn = 0u; turn < (MOST + WG - 1u) / WG; turn++) {
        let i = n + id + turn * WG;
        if (i >= MOST) {
            break;
        }
        held[i] = vec4<f32>();
    }
    workgroupBarrier();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = turn * (WG / AT_ONCE);
        if (k >= p.rank) {
            break;
        }
        if (k > 0u) {
            of_a = a_eights(k + k0, start);
            factor = b2[p.b_scales + min(k + k0, p.rank - 1u)];
        }
        var mine = times_held(of_a, start);
        for (var more = 1u; more < MOST / (8u * AT_ONCE); more++) {
            let i = start + 8u * AT_ONCE * more;
            if (i >= n) {
                break;
            }
            mine += times_held(a_eights(k + k0, i), i);
        }
        let z = add_over(vec4<f32>(mine, 0.0, 0.0, 0.0), id, AT_ONCE).x;
        if (start == 0u && k + k0 < p.rank) {
            own[k + k0] = z * factor;
        }
        workgroupBarrier(); // before the next sum, and before z is read
    }
    var mine = four_rows(rows, 0u, lane);
    if (p.rank > 0u) {
        mine += own[min(lane, 255u)] * b0 + own[min(lane + LANES, 255u)] * b1;
    }
    for (var turn = 2u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= p.rank) {
            break;
        }
        mine += own[k] * b2_at(rows, k);
    }
    let sum = add_lanes(mine, id);
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
