// head_norm_rope - each head u of x: u = u / sqrt(mean(u^2) + eps) * w, then for the pairs i <
//   n_pair (u[i], u[i + half]) is rotated by the angle whose cosine and sine the row's table has
//
//   table  read    rows x 2 n_pair f32: cosines, sines   grid   one workgroup a (row, head)
//   w      read    head_dim f32                          bytes  2 reads + 1 write an element
//   x      update  rows x n_head x head_dim f32          needs  head_dim even
//
// n_pair 0: no rotation, table is any buffer; has_w 0: no weight, w is any buffer; has_norm 0:
// rotation alone. way: 1, or -1 for the rotation back.
// Reference: head_norm() and rope() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sum here, f64
// there.

//!axis tier plain subgroup
//!include lib/base.wgsl
//!include lib/sum.wgsl

struct Params {
    rows : u32,
    n_head : u32,
    head_dim : u32,
    n_pair : u32,
    has_w : u32,
    has_norm : u32,
    way : f32,
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind table read array<f32>
//!bind w read array<f32>
//!bind x update array<f32>

override WG : u32 = 64u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let head = flat_group(wid, num);
    if (head >= p.rows * p.n_head) {
        return;
    }
    let half = p.head_dim / 2u;
    let at = head * p.head_dim;
    var squares = 0.0;
    for (var i = lid; i < half; i += WG) {
        let a = x[at + i];
        let b = x[at + i + half];
        squares += a * a + b * b;
    }
    var inverse = inverseSqrt(workgroup_sum(squares, lid) / f32(p.head_dim) + p.eps);
    if (p.has_norm == 0u) {
        inverse = 1.0;
    }
    let turn = (head / p.n_head) * 2u * p.n_pair;
    for (var i = lid; i < half; i += WG) {
        var a = x[at + i] * inverse;
        var b = x[at + i + half] * inverse;
        if (p.has_w != 0u) {
            a *= w[i];
            b *= w[i + half];
        }
        if (i < p.n_pair) {
            let c = table[turn + i];
            let s = p.way * table[turn + p.n_pair + i];
            let rotated = a * c - b * s;
            b = a * s + b * c;
            a = rotated;
        }
        x[at + i] = a;
        x[at + i + half] = b;
    }
}
