// experts_gate_up - the kernel of that name without its shape and add_lanes(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/gelu.wgsl
//!include lib/one_input.wgsl
//!include lib/four_rows.wgsl
//!include lib/lora.wgsl

struct Params {
    cols : u32,
    n_ff : u32, // rows of gate, and of up
    mat0 : u32, // first expert of this buffer
    n_mat : u32,
    n_tok : u32,
    n_used : u32,
    x_stride : u32, // f32 from t to t
    scales : u32,   // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of the adapters, see lib/lora.wgsl
    b_rows : u32,
    b_scales : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind ids read array<i32>
//!bind w read array<vec4<u32>>
//!bind z read array<f32>
//!bind b read array<f32>
//!bind y update array<f32>

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let teams = WG / LANES;
    let per_slot = (p.n_ff + 2u * teams - 1u) / (2u * teams);
    let group = flat_group(wid, num);
    let slot = group / per_slot; // counted through all t
    if (slot >= p.n_tok * p.n_used) {
        return;
    }
    let mat = u32(ids[slot]) - p.mat0;
    if (mat >= p.n_mat) {
        return;
    }
    // Two columns of y a team: their gate rows and their up rows.
    let first = 2u * (group % per_slot * teams + id / LANES);
    let col = min(vec2<u32>(first, first + 1u), vec2<u32>(p.n_ff - 1u));
    let rows = vec4<u32>(col, col + p.n_ff);
    let lane = id % LANES;
    let x_base = slot / p.n_used * (p.x_stride / 4u);
    var mine = four_rows(rows + 2u * mat * p.n_ff, x_base, lane);
    if (p.rank > 0u) {
        mine += lora_rows(u32(ids[slot]), rows, slot * p.rank, lane, LANES);
    }
    let sum = add_lanes(mine, id);
    let h = gelu_tanh(sum).xy * sum.zw;
    for (var c = lane; c < 2u; c += LANES) {
        if (first + c < p.n_ff) {
            y[slot * p.n_ff + first + c] = h[c];
        }
    }
}
