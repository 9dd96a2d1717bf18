// join_gate_up - the kernels join_gate_up and join_gate_up_lora without their shape, add_over(), Params, adapted() and what is made for the reader, lib/parts_of_z: a file and its tier
// choose.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
//!include lib/gelu.wgsl
//!include lib/joining.wgsl
//!include lib/hold.wgsl
//!include lib/pair_rows.wgsl
//!include lib/put_settled.wgsl

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> w2 : array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> y : array<f32>;
@group(0) @binding(8) var<storage, read_write> s : array<vec4<u32>>;

fn post_of(i : u32) -> vec4<f32> {
    return vectors[p.post_at + i];
}

fn factor() -> f32 {
    return 1.0;
}

fn normed() -> bool {
    return true;
}

fn lead(i : u32) -> vec4<f32> {
    return vectors[p.next_at + i];
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
    begin_adapters(hold(tok, id, turn.at == 0u));
    for (var i = 0u; i < MOST_TURNS; i++) {
        let block = turn.at + i * groups;
        if (block * R * teams >= p.rows) {
            break;
        }
        let first = R * (block * teams + id / LANES);
        let rows = four_from(first, p.rows);
        let of_a = begin_part(block, id);
        let mine = pair_rows(rows, 0u, id % LANES);
        let sums = add_pair(adapted(mine, rows, tok, id % LANES), id);
        put_rows(tok, first, sums.first, sums.second, id);
        add_part(of_a, block, id);
        workgroupBarrier(); // before the next block's first
    }
    put_part(turn.at, id);
}
