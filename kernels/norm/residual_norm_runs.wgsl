// residual_norm_runs - to[t] = (x[t] + norm(branch[t]) * post) * scale[0], then
//   y[t] = norm(to[t]) * next_w, with norm(v) = v / sqrt(mean(v^2) + eps)     (each row t)
//
//   x       read   rows x cols f32
//   branch  read   rows x cols f32
//   post    read   cols f32
//   scale   read   1 f32
//   next_w  read   cols f32
//   to      write  rows x cols f32
//   y       write  rows x cols f32
//   s       write  y, ready
//   grid   rows workgroups
//   bytes  4 reads + 2 or 3 writes an element
//   needs  cols % 16 == 0; cols <= 16 RUNS WG, RUNS 1 or 2; has_branch 0: nothing is added, branch
//          and post are any buffers; has_scale 0: factor 1, any buffer; has_next 0: y would be
//          to[t], next_w is any buffer; puts 0: no y; makes_ready 0: no s
//
// As residual_norm, for rows that fit the registers of a workgroup: each number is read once.
//
// Reference: the nodes of rule residual_norm, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums
// here, f64 there.

//!axis acts f32 int8
//!axis tier plain subgroup
//!axis vectors each
//!include lib/lanes.wgsl
//!include lib/residual.wgsl
//!include lib/acts.wgsl

override RUNS : u32 = 1u; // of sixteen columns, that a thread has
//!bind s update array<vec4<u32>>

fn normed() -> bool {
    return p.has_next != 0u;
}

fn next_of(i : u32) -> vec4<f32> {
    return next_w[i];
}

// Columns from vec4 i of the row on.
fn finish(i : u32, c : Columns, j : Residual) {
    let at = j.at + i;
    let state = next_state(c, j);
    let v = block_input(c, j, state);
    put_state(at, state);
    if (p.puts != 0u) {
        y[at] = v.a;
        y[at + 1u] = v.b;
        y[at + 2u] = v.c;
        y[at + 3u] = v.d;
    }
    if (p.makes_ready != 0u) {
        put_run(j.at, p.cols, i / 4u, make_ready(v.a, v.b, v.c, v.d));
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let row = flat_group(wid, num);
    if (row >= p.rows) {
        return;
    }
    residual_row(row, id);
}
