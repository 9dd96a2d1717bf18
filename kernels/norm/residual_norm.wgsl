// residual_norm - to[t] = (x[t] + norm(branch[t]) * post) * scale[0], then y[t] = norm(to[t]) *
//   next_w
//   with norm(v) = v / sqrt(mean(v^2) + eps)     (each row t)
//
//   x       read   rows x cols f32   grid   as many workgroups a row as one likes, each t in turn
//   branch  read   rows x cols f32   bytes  4 reads + 2 writes an element
//   post    read   cols f32          needs  cols % 4 == 0; has_branch 0: nothing is added, branch
//   scale   read   1 f32                    and post are any buffers; has_scale 0: factor 1, any
//   next_w  read   cols f32                 buffer; has_next 0: y would be to[t], next_w is any
//   to      write  rows x cols f32          buffer; puts 0: no y
//   y       write  rows x cols f32
//
// The end of one block and the start of the next in one dispatch, for rows of any length: see
// residual_norm_runs. Every workgroup of a row adds all of it up, and then writes its part.
// Reference: the nodes of rule residual_norm, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums
// here, f64 there.

//!axis tier plain subgroup
//!axis vectors each
//!include lib/lanes.wgsl
//!include lib/residual.wgsl

// What the next block reads of vec4 i, which is v of the stream.
fn leads_on(j : Joining, v : vec4<f32>, i : u32) -> vec4<f32> {
    if (p.has_next != 0u) {
        return v * j.inverse * next_w[i];
    }
    return v;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let groups = num.x * num.y / p.rows;
    let group = flat_group(wid, num);
    let row = group / groups;
    if (row >= p.rows) {
        return;
    }
    let n = p.cols / 4u;
    let j = begin_joining(row * n, id);
    for (var i = group % groups * WG + id; i < n; i += groups * WG) {
        let v = joined(j, i);
        to[j.at + i] = v;
        if (p.puts != 0u) {
            y[j.at + i] = leads_on(j, v, i);
        }
    }
}
