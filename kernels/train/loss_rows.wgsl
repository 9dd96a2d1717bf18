// loss_rows - with v = cap tanh(z / cap), each row: loss = log sum exp v - v[target], and z becomes
//   weight times its gradient, (softmax(v) - [target]) (1 - (v / cap)^2); rows whose target is
//   negative become 0     (training)
//
//   targets  read    n i32, from first         grid   one workgroup a row
//   loss     update  n f32, from first         bytes  2 reads + 2 writes an element of z
//   z        update  rows x stride f32         needs  stride % 4 == 0; cap 0: none
//
// Reference: loss_row() in src/ops/ops_cpu_bwd.c. Tolerance 1e-9 nmse: the device's exp and tanh.

//!axis tier plain
//!include lib/base.wgsl
//!include lib/sum.wgsl

struct Params {
    rows : u32,
    cols : u32,
    stride : u32, // what is between becomes 0
    first : u32,
    cap : f32,
    weight : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind targets read array<i32>
//!bind loss update array<f32>
//!bind z update array<vec4<f32>>

override WG : u32 = 256u;

const LOWEST : f32 = -3.0e38;

var<workgroup> tops : array<f32, 256>;

// The columns of vector i.
fn places(i : u32) -> vec4<u32> {
    return vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u);
}

fn capped(v : vec4<f32>) -> vec4<f32> {
    if (p.cap == 0.0) {
        return v;
    }
    return p.cap * tanh(clamp(v / p.cap, vec4<f32>(-15.0), vec4<f32>(15.0)));
}

fn workgroup_max(v : f32, lid : u32) -> f32 {
    tops[lid] = v;
    workgroupBarrier();
    var top = v;
    for (var i = 0u; i < WG; i++) {
        top = max(top, tops[i]);
    }
    return top;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let row = flat_group(wid, num);
    if (row >= p.rows) {
        return;
    }
    let n = p.stride / 4u;
    let at = row * n;
    let wanted = targets[p.first + row];
    // The largest so far and the sum of exponentials under it, of this thread.
    var top = LOWEST;
    var total = 0.0;
    for (var i = lid; i < n; i += WG) {
        let v = select(vec4<f32>(LOWEST), capped(z[at + i]), places(i) < vec4<u32>(p.cols));
        z[at + i] = v;
        let new_top = max(top, max(max(v.x, v.y), max(v.z, v.w)));
        total = total * exp(top - new_top) + dot(exp(v - new_top), vec4<f32>(1.0));
        top = new_top;
    }
    let highest = workgroup_max(top, lid);
    let sum = workgroup_sum(total * exp(top - highest), lid);
    for (var i = lid; i < n; i += WG) {
        if (wanted < 0) {
            z[at + i] = vec4<f32>();
            continue;
        }
        let v = z[at + i];
        let there = places(i) < vec4<u32>(p.cols);
        let mine = places(i) == vec4<u32>(u32(wanted));
        let bent = select(vec4<f32>(), v / p.cap, there & vec4<bool>(p.cap != 0.0));
        let off = exp(v - highest) / sum - select(vec4<f32>(), vec4<f32>(1.0), mine);
        z[at + i] = select(vec4<f32>(), p.weight * off * (1.0 - bent * bent), there);
        if (any(mine)) {
            loss[p.first + row] =
                highest + log(sum) - dot(v, select(vec4<f32>(), vec4<f32>(1.0), mine));
        }
    }
    if (wanted < 0 && lid == 0u) {
        loss[p.first + row] = 0.0;
    }
}
