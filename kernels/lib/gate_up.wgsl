// gate_up - the kernel of that name without its shape and add_lanes(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/gelu.wgsl
//!include lib/one_input.wgsl
//!include lib/four_rows.wgsl

struct Params {
    cols : u32,
    rows : u32,     // of each matrix
    n_tok : u32,    // rows of x and y
    x_stride : u32, // f32 from row to row, a multiple of 4
    y_stride : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> w2 : array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> y : array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let teams = WG / LANES;
    let per_tok = (p.rows + 4u * teams - 1u) / (4u * teams);
    let group = flat_group(wid, num);
    let tok = group / per_tok;
    if (tok >= p.n_tok) {
        return;
    }
    let first = 4u * (group % per_tok * teams + id / LANES);
    let rows = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(p.rows - 1u));
    let lane = id % LANES;
    let x_base = tok * (p.x_stride / 4u);
    second = false;
    let gate = four_rows(rows, x_base, lane);
    second = true;
    let up = four_rows(rows, x_base, lane);
    let gate_sum = add_lanes(gate, id);
    workgroupBarrier(); // before the second sum
    let h = gelu_tanh(gate_sum) * add_lanes(up, id);
    for (var r = lane; r < 4u; r += LANES) {
        if (first + r < p.rows) {
            y[tok * p.y_stride + first + r] = h[r];
        }
    }
}
