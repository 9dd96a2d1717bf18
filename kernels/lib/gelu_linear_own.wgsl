// gelu_linear_own - the kernel of that name without its shape and add_over(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/gelu.wgsl
//!include lib/owed_eight.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    rows : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    by_col : u32,    // column of `by` that meets column 0 of g, a multiple of 4
    owed_rank : u32, // of g, see lib/owed.wgsl; in one part
    owed_at : u32,
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

const MOST : u32 = 128u;   // vec4s of a row
const EIGHTS : u32 = 512u; // of k for every vec4 of a row: what g is owed, before it is added up
var<workgroup> held : array<vec4<f32>, MOST>;
var<workgroup> lacking : array<vec4<f32>, EIGHTS>;
var<workgroup> own : array<f32, 256>;

fn x_at(i : u32) -> vec4<f32> {
    return held[i];
}

fn owed_z(i : u32) -> vec4<f32> {
    return g[i];
}

fn owed_n() -> u32 {
    return p.cols / 4u;
}

// v, by the whole workgroup: first what g is owed, eight k of four columns a thread, then a thread for four columns.
fn make_row(id : u32) {
    let n = p.cols / 4u;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let item = id + turn * WG;
        if (item >= n * (p.owed_rank / 8u)) {
            break;
        }
        let eight = item >> firstTrailingBit(n);
        lacking[item] = owed_eight(8u * eight, item & (n - 1u));
    }
    workgroupBarrier();
    for (var turn = 0u; turn < (MOST + WG - 1u) / WG; turn++) {
        let i = id + turn * WG;
        if (i >= n) {
            break;
        }
        var v = g[i];
        for (var eight = 0u; eight < MOST_TURNS; eight++) {
            if (8u * eight >= p.owed_rank) {
                break;
            }
            v += lacking[eight * n + i];
        }
        held[i] = gelu_tanh(v) * by[p.by_col / 4u + i];
    }
    workgroupBarrier();
}

const AT_ONCE : u32 = 8u; // lanes that share a row of A

// Eight vec4s of a row of A, those from i on that a lane has.
struct Eights {
    low : mat4x4<f32>,
    high : mat4x4<f32>,
}

fn a_eights(at : u32) -> Eights {
    return Eights(mat4x4<f32>(a[at], a[at + AT_ONCE], a[at + 2u * AT_ONCE], a[at + 3u * AT_ONCE]),
                  mat4x4<f32>(a[at + 4u * AT_ONCE], a[at + 5u * AT_ONCE], a[at + 6u * AT_ONCE], a[at + 7u * AT_ONCE]));
}

fn times_held(e : Eights, i : u32) -> f32 {
    let low = e.low[0] * held[i] + e.low[1] * held[i + AT_ONCE] + e.low[2] * held[i + 2u * AT_ONCE] + e.low[3] * held[i + 3u * AT_ONCE];
    let high = e.high[0] * held[i + 4u * AT_ONCE] + e.high[1] * held[i + 5u * AT_ONCE] + e.high[2] * held[i + 6u * AT_ONCE] +
               e.high[3] * held[i + 7u * AT_ONCE];
    let sum = low + high;
    return (sum.x + sum.y) + (sum.z + sum.w);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let n = p.cols / 4u;
    let lane = id % LANES;
    let row = min(flat_group(wid, num) * (WG / LANES) + id / LANES, p.rows - 1u);
    // What does not wait for the row is on its way while it is made: the first rows of A, and what meets A of it.
    let k0 = id / AT_ONCE;
    let start = id % AT_ONCE;
    var of_a = Eights();
    var factor = 0.0;
    var of_b = 0.0;
    if (k0 < p.rank) {
        of_a = a_eights(k0 * n + start);
        factor = b2[p.b_scales + k0];
    }
    if (lane < p.rank) {
        of_b = b2[lane * p.rows + row];
    }
    make_row(id);
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = turn * (WG / AT_ONCE) + k0;
        if (turn * (WG / AT_ONCE) >= p.rank) {
            break;
        }
        var mine = 0.0;
        if (k < p.rank) {
            for (var more = 0u; more < MOST / (8u * AT_ONCE); more++) {
                let i = 8u * AT_ONCE * more + start;
                if (i >= n) {
                    break;
                }
                if (turn + more > 0u) {
                    of_a = a_eights(k * n + i);
                }
                mine += times_held(of_a, i);
            }
            if (turn > 0u) {
                factor = b2[p.b_scales + k];
            }
        }
        let z = add_some(vec4<f32>(mine, 0.0, 0.0, 0.0), 1u, id, AT_ONCE).x;
        if (start == 0u && k < p.rank) {
            own[k] = z * factor;
        }
        workgroupBarrier(); // before the next sum, and before z is read
    }
    var mine = four_rows(vec4<u32>(row), 0u, lane).x;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= p.rank) {
            break;
        }
        if (turn > 0u) {
            of_b = b2[k * p.rows + row];
        }
        mine += own[k] * of_b;
    }
    let sum = add_some(vec4<f32>(mine, 0.0, 0.0, 0.0), 1u, id, LANES).x;
    if (lane == 0u) {
        y[row] = sum; // past the end the last one again
    }
}
