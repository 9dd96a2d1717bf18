// residual_norm - to[t] = (x[t] + norm(branch[t]) * post) * scale[0], then
//   y[t] = norm(to[t]) * next_w, with norm(v) = v / sqrt(mean(v^2) + eps)     (each row t)
//
//   x       read   rows x cols f32
//   branch  read   rows x cols f32
//   post    read   cols f32
//   scale   read   1 f32
//   next_w  read   cols f32
//   to      write  rows x cols f32
//   y       write  rows x cols f32
//   grid   each t in turn: any number of workgroups, as many for each
//   bytes  4 reads + 2 writes an element
//   needs  cols % 4 == 0; has_branch 0: nothing is added, branch and post are any buffers;
//          has_scale 0: factor 1, any buffer; has_next 0: y would be to[t], next_w is any buffer;
//          puts 0: no y
//
// The residual and the norm of the next block in one dispatch, for rows of any length. Every
// workgroup of a row sums all of it, and then writes its part.
//
// Reference: the nodes of rule residual_norm, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums
// here, f64 there.

//!axis tier plain subgroup
//!axis vectors each
//!include lib/lanes.wgsl
//!include lib/residual.wgsl

// What the next block reads of vec4 i, which is v of the stream.
fn normed_at(j : Residual, v : vec4<f32>, i : u32) -> vec4<f32> {
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
    let j = read_residual(row * n, id);
    for (var i = group % groups * WG + id; i < n; i += groups * WG) {
        let v = residual_at(j, i);
        to[j.at + i] = v;
        if (p.puts != 0u) {
            y[j.at + i] = normed_at(j, v, i);
        }
    }
}
