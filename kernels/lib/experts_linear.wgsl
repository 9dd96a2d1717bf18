// experts_linear - the kernel of that name without its shape and add_lanes(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    rows : u32, // of one expert
    mat0 : u32, // first expert of this buffer
    n_mat : u32,
    n_tok : u32,
    n_used : u32,
    x_stride : u32, // f32 from t to t
    x_slot : u32,   // f32 from slot to slot; 0: all slots of a t share a row
    y_stride : u32, // f32 from (t, slot) to the next
    y_col : u32,    // first column written
    scales : u32,   // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    add : u32,   // 1: y += instead of y =
    scale : f32, // times W_e x
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> ids : array<i32>;
@group(0) @binding(3) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> y : array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let teams = WG / LANES;
    let per_slot = (p.rows + 4u * teams - 1u) / (4u * teams);
    let group = flat_group(wid, num);
    let slot = group / per_slot; // counted through all t
    if (slot >= p.n_tok * p.n_used) {
        return;
    }
    let mat = u32(ids[slot]) - p.mat0;
    if (mat >= p.n_mat) {
        return;
    }
    let first = 4u * (group % per_slot * teams + id / LANES);
    let rows = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(p.rows - 1u));
    let x_base = (slot / p.n_used * p.x_stride + slot % p.n_used * p.x_slot) / 4u;
    let lane = id % LANES;
    let sum = add_lanes(four_rows(rows + mat * p.rows, x_base, lane), id);
    for (var r = lane; r < 4u; r += LANES) {
        if (first + r < p.rows) {
            let i = slot * p.y_stride + p.y_col + first + r;
            var v = p.scale * sum[r];
            if (p.add == 1u) {
                v += y[i];
            }
            y[i] = v;
        }
    }
}
