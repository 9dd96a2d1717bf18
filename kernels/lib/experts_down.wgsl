// experts_down - the kernels experts_down and experts_down_no_lora as a whole, but for adapted():
// what adapters add to a product.

struct Params {
    cols : u32,
    rows : u32, // of one expert
    mat0 : u32, // first expert of this buffer
    n_mat : u32,
    n_tok : u32,
    n_used : u32,
    x_slot : u32,   // f32 from (t, slot) to the next
    y_stride : u32, // f32 from t to t
    scales : u32,   // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    has_factor : u32,
    add : u32,  // 1: y += instead of y =
    rank : u32, // of the adapters, see lib/lora.wgsl
    b_rows : u32,
    b_scales : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind ids read array<i32>
//!bind weights read array<f32>
//!bind factor read array<f32>
//!bind w read array<vec4<u32>>
//!bind y update array<f32>

// What a slot's expert counts for.
fn share(slot : u32) -> f32 {
    if (p.has_factor == 1u) {
        return weights[slot] * factor[ids[slot]];
    }
    return weights[slot];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let row_groups = WG / LANES;
    let per_tok = (p.rows + R * row_groups - 1u) / (R * row_groups);
    let place = turn_of(flat_group(wid, num), per_tok);
    let tok = place.row;
    if (tok >= p.n_tok) {
        return;
    }
    let first = R * (place.at * row_groups + id / LANES);
    let rows = four_from(first, p.rows);
    let lane = id % LANES;
    // The slots' columns lie behind each other, so that all experts are read at once.
    let units = (p.cols + UNIT - 1u) / UNIT;
    var mine = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let i = lane + turn * LANES;
        if (i >= p.n_used * units) {
            break;
        }
        let slot = tok * p.n_used + i / units;
        let u = i % units;
        let mat = u32(ids[slot]) - p.mat0;
        if (mat < p.n_mat) {
            mine += share(slot) *
                unit_dots((rows + mat * p.rows) * units, u, acts(slot * (p.x_slot / 4u), u));
        }
    }
    let sum = add_lanes(adapted(mine, rows, tok, lane), id);
    for (var r = lane; r < R; r += LANES) {
        if (first + r < p.rows) {
            let i = tok * p.y_stride + first + r;
            var v = sum[r];
            if (p.add == 1u) {
                v += y[i];
            }
            y[i] = v;
        }
    }
}
