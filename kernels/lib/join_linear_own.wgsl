// join_linear_own - the kernel of that name without its shape, add_over() and hold(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/gelu.wgsl
//!include lib/join_vectors.wgsl
//!include lib/joining.wgsl
//!include lib/held_own.wgsl
//!include lib/own_z.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    rows : u32,
    n_tok : u32, // rows of x and y
    y_stride : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    by_stride : u32, // f32 from row to row of `by`
    by_col : u32,    // its column that meets column 0 of y
    has_branch : u32,
    has_scale : u32,
    has_next : u32,
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    rank : u32, // of the adapters, see lib/own_z.wgsl
    b_rows : u32,
    b_scales : u32,
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> by : array<f32>;
@group(0) @binding(6) var<storage, read> a : array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> b : array<f32>;
@group(0) @binding(8) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(9) var<storage, read_write> y : array<f32>;

override GELU : u32 = 0u; // 1: y = gelu(...) * by

fn normed() -> bool {
    return p.has_next != 0u;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    // The workgroups of a row take its teams' rows in turn, so that few of them join.
    let teams = WG / LANES;
    let groups = num.x * num.y / p.n_tok;
    let group = flat_group(wid, num);
    let tok = group / groups;
    if (tok >= p.n_tok) {
        return;
    }
    hold(tok, id, group % groups == 0u);
    make_z(id);
    let lane = id % LANES;
    for (var block = group % groups; block * R * teams < p.rows; block += groups) {
        let first = R * (block * teams + id / LANES);
        let rows = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(p.rows - 1u));
        var h = add_lanes(four_rows(rows, 0u, lane) + own_rows(rows, lane), id);
        if (GELU == 1u) {
            h = gelu_tanh(h);
        }
        for (var r = lane; r < R; r += LANES) {
            if (first + r < p.rows) {
                var v = h[r];
                if (GELU == 1u) {
                    v *= by[tok * p.by_stride + p.by_col + first + r];
                }
                y[tok * p.y_stride + first + r] = v;
            }
        }
        workgroupBarrier(); // before the next block's sum
    }
}
