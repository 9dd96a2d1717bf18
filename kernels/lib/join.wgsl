// join - the kernel of that name without its sum, which a tier chooses.
//!include lib/grid.wgsl
//!include lib/join_io.wgsl
//!include lib/joining.wgsl

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
