// norm_sum - y[t] = norm(a[t]) * a_w + norm(b[t]) * b_w  with norm(v) = v / sqrt(mean(v^2) + eps)
//   (each row t)
//
//   a    read   rows x cols f32   grid   rows workgroups
//   b    read   rows x cols f32   bytes  4 reads + 1 write an element
//   a_w  read   cols f32          needs  cols % 16 == 0; cols <= 16 RUNS WG, RUNS 1 or 2
//   b_w  read   cols f32
//   y    write  rows x cols f32
//
// Rows stay in the registers of a workgroup: all is read at once, and once.
// Reference: the nodes of rule norm_sum, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here,
// f64 there.

//!axis tier plain subgroup
//!include lib/base.wgsl
//!include lib/lanes.wgsl

struct Params {
    rows : u32,
    cols : u32,
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind a read array<vec4<f32>>
//!bind b read array<vec4<f32>>
//!bind a_w read array<vec4<f32>>
//!bind b_w read array<vec4<f32>>
//!bind y update array<vec4<f32>>

override RUNS : u32 = 1u; // of sixteen columns, that a thread has

// Sixteen columns of both rows, each times its weight, and what they give to the sums of squares.
struct Both {
    a : Sixteen,
    b : Sixteen,
    squares : vec2<f32>,
}

// From vec4 i of the row on, which is vec4 `at` of the buffers.
fn both(at : u32, i : u32) -> Both {
    let u = Sixteen(a[at], a[at + 1u], a[at + 2u], a[at + 3u]);
    let v = Sixteen(b[at], b[at + 1u], b[at + 2u], b[at + 3u]);
    let u_w = Sixteen(a_w[i], a_w[i + 1u], a_w[i + 2u], a_w[i + 3u]);
    let v_w = Sixteen(b_w[i], b_w[i + 1u], b_w[i + 2u], b_w[i + 3u]);
    return Both(times(u, u_w), times(v, v_w), vec2<f32>(square_sum(u), square_sum(v)));
}

fn put(at : u32, c : Both, inverse : vec4<f32>) {
    y[at] = c.a.a * inverse.x + c.b.a * inverse.y;
    y[at + 1u] = c.a.b * inverse.x + c.b.b * inverse.y;
    y[at + 2u] = c.a.c * inverse.x + c.b.c * inverse.y;
    y[at + 3u] = c.a.d * inverse.x + c.b.d * inverse.y;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let row = flat_group(wid, num);
    if (row >= p.rows) {
        return;
    }
    let n = p.cols / 4u;
    let i = 4u * id;
    let k = 4u * (id + WG);
    var c = Both();
    var d = Both();
    if (i < n) {
        c = both(row * n + i, i);
    }
    if (RUNS > 1u && k < n) {
        d = both(row * n + k, k);
    }
    let squares = add_some(vec4<f32>(c.squares + d.squares, 0.0, 0.0), 2u, id, WG);
    let inverse = inverseSqrt(squares / f32(p.cols) + p.eps);
    if (i < n) {
        put(row * n + i, c, inverse);
    }
    if (RUNS > 1u && k < n) {
        put(row * n + k, d, inverse);
    }
}
