// join_gelu - the kernels join_gelu and join_gelu_owed without their shape, add_over(), Params, hold(), how many rows W has, and what becomes
// of their products: a file and its tier choose.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/gelu.wgsl
//!include lib/joining.wgsl
//!include lib/four_rows.wgsl

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> post : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> by : array<f32>;
@group(0) @binding(6) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> y : array<f32>;

fn post_of(i : u32) -> vec4<f32> {
    return post[i];
}

fn factor() -> f32 {
    return 1.0;
}

fn normed() -> bool {
    return false;
}

fn lead(i : u32) -> vec4<f32> {
    return vec4<f32>(1.0);
}

fn put_gated(tok : u32, row : u32, v : f32) {
    y[tok * p.y_stride + row] = gelu(v) * by[tok * p.by_stride + p.by_col + row];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    // The workgroups of a row take its teams' rows in turn, so that few of them join.
    let teams = WG / LANES;
    let groups = groups_a_row(num, p.n_tok);
    let turn = turn_of(flat_group(wid, num), groups);
    let tok = turn.row;
    if (tok >= p.n_tok) {
        return;
    }
    hold(tok, id, turn.at == 0u);
    let lane = id % LANES;
    for (var i = 0u; i < MOST_TURNS; i++) {
        let block = turn.at + i * groups;
        if (block * R * teams >= n_rows()) {
            break;
        }
        let first = R * (block * teams + id / LANES);
        let rows = four_from(first, n_rows());
        let h = add_lanes(four_rows(rows, 0u, lane), id);
        for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
            let r = lane + k * LANES;
            if (r >= R) {
                break;
            }
            if (first + r < n_rows()) {
                put_row(tok, first + r, h[r]);
            }
        }
        workgroupBarrier(); // before the next block's sum
    }
}
