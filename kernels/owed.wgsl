// owed - y += s B z, where z, in parts that are to be added up, lies behind y     (decode: one row)
//
//   b  read    see lib/lora.wgsl                             grid   one thread per four columns
//   y  update  cols f32; from vec4 owed_at on owed_parts x   bytes  B once, y 1 read + 1 write
//              owed_rank f32                                 needs  cols % 4 == 0; owed_rank % 8 == 0
//
// For who reads y and cannot add this itself, as joins can.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.
//!include lib/grid.wgsl
//!include lib/turns.wgsl
//!include lib/owed.wgsl
struct Params {
    cols : u32,
    owed_rank : u32,
    owed_at : u32,
    owed_parts : u32,
    owed_scales : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> b : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y : array<vec4<f32>>;

const WG : u32 = 64u;

fn owed_z(i : u32) -> vec4<f32> {
    return y[i];
}

// Columns 4i .. 4i + 3.
fn owed_vec(i : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    let n = p.cols / 4u;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = 8u * turn;
        if (k >= p.owed_rank) {
            break;
        }
        let at = k * n + i;
        let low = mat4x4<f32>(b[at], b[at + n], b[at + 2u * n], b[at + 3u * n]);
        let high = mat4x4<f32>(b[at + 4u * n], b[at + 5u * n], b[at + 6u * n], b[at + 7u * n]);
        sum += low * owed_four(k) + high * owed_four(k + 4u);
    }
    return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let i = flat_group(wid, num) * WG + lid;
    if (i < p.cols / 4u) {
        y[i] += owed_vec(i);
    }
}
