// head_norm_rope_bwd - each head of d: the rotation back, then as rms_norm_bwd with the head u of x
//   as it was
//
//   table  read    rows x 2 n_pair f32: cosines, sines   grid   one workgroup a (row, head)
//   x      read    rows x n_head x head_dim f32          bytes  4 reads + 2 writes an element
//   w      read    head_dim f32                          needs  head_dim even
//   d      update  rows x n_head x head_dim f32
//
// n_pair 0: no rotation, table is any buffer; has_w 0: no weight, w is any buffer.
// Reference: head_norm_rope_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-10 nmse: f32 sums here,
// f64 there.

//!axis tier plain
//!include lib/base.wgsl
//!include lib/sum.wgsl

struct Params {
    rows : u32,
    n_head : u32,
    head_dim : u32,
    n_pair : u32,
    has_w : u32,
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind table read array<f32>
//!bind x read array<f32>
//!bind w read array<f32>
//!bind d update array<f32>

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
    let turn = (head / p.n_head) * 2u * p.n_pair;
    var squares = 0.0;
    var products = 0.0;
    for (var i = lid; i < half; i += WG) {
        var a = d[at + i];
        var b = d[at + i + half];
        if (i < p.n_pair) {
            let c = table[turn + i];
            let s = table[turn + p.n_pair + i];
            let rotated = a * c + b * s;
            b = b * c - a * s;
            a = rotated;
        }
        if (p.has_w != 0u) {
            a *= w[i];
            b *= w[i + half];
        }
        d[at + i] = a; // only this thread reads them again
        d[at + i + half] = b;
        let u = x[at + i];
        let v = x[at + i + half];
        squares += u * u + v * v;
        products += u * a + v * b;
    }
    let inverse = inverseSqrt(workgroup_sum(squares, lid) / f32(p.head_dim) + p.eps);
    workgroupBarrier(); // before the second sum
    let mean = workgroup_sum(products, lid) * inverse / f32(p.head_dim);
    for (var i = lid; i < half; i += WG) {
        d[at + i] = (d[at + i] - x[at + i] * (inverse * mean)) * inverse;
        d[at + i + half] = (d[at + i + half] - x[at + i + half] * (inverse * mean)) * inverse;
    }
}
