// join_runs - the kernel of that name without its sum, which a tier chooses.
//!include lib/grid.wgsl
//!include lib/join_io.wgsl
//!include lib/join_row.wgsl

//!bind s update array<vec4<u32>>

fn normed() -> bool {
    return p.has_next != 0u;
}

fn lead(i : u32) -> vec4<f32> {
    return next_w[i];
}

// Columns from vec4 i of the row on.
fn finish(i : u32, c : Columns, j : Joining) {
    let at = j.at + i;
    let state = next_state(c, j);
    let v = leading(c, j, state);
    put_state(at, state);
    if (p.puts != 0u) {
        y[at] = v.a;
        y[at + 1u] = v.b;
        y[at + 2u] = v.c;
        y[at + 3u] = v.d;
    }
    if (p.settles != 0u) {
        put_run(j.at, p.cols, i / 4u, settle(v.a, v.b, v.c, v.d));
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let row = flat_group(wid, num);
    if (row >= p.rows) {
        return;
    }
    join_row(row, id);
}
