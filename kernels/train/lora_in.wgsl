// lora_in - z[t] = M (m * x)[t], where M has few rows: A, or B transposed; DROP 0: m is 1
//   (training)
//
//   x  read   n_tok x cols f32       grid   a workgroup per 4 rows t and 16 rows of M, t first
//   m  read   rows of stride f32     bytes  M once per 4 rows t, x once per 16 rows of M
//   z  write  n_tok x z_stride f32   needs  cols, stride % 4 == 0; rank % 8 == 0
//
// The rows of M from `at` on give the columns of z from `at` on.
// Each thread has every WG-th vector of columns of 4 x 16 products; the threads' sums are added
// up at the end.
// Reference: linear_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis tier plain software
//!include lib/base.wgsl

struct Params {
    cols : u32,
    stride : u32, // f32 from row to row of M
    rank : u32,
    n_tok : u32,
    z_stride : u32,
    at : u32,
    salt : u32,
    share : f32,
    kept : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind m read array<vec4<f32>>
//!bind z update array<f32>

//!include train/dropout.wgsl

//!if tier == software
// For devices in software, as in matmul. The grid is a thread per 4 rows t and 8 rows of M, t
// first.
const WG : u32 = 16u;

// Four columns of four rows of M, transposed.
fn m_four(at : u32) -> mat4x4<f32> {
    let n = p.stride / 4u;
    return transpose(mat4x4<f32>(m[at], m[at + n], m[at + 2u * n], m[at + 3u * n]));
}

fn put(tok : u32, k : u32, v : vec4<f32>) {
    if (tok < p.n_tok) {
        let at = tok * p.z_stride + p.at + k;
        z[at] = v.x;
        z[at + 1u] = v.y;
        z[at + 2u] = v.z;
        z[at + 3u] = v.w;
    }
}

fn put_four(tok : u32, k : u32, v : mat4x4<f32>) {
    put(tok, k, v[0]);
    put(tok + 1u, k, v[1]);
    put(tok + 2u, k, v[2]);
    put(tok + 3u, k, v[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = single_thread(wid, num, id);
    let tok_tiles = (p.n_tok + 3u) / 4u;
    let tok = i % tok_tiles * 4u;
    let k = i / tok_tiles * 8u;
    if (k >= p.rank) {
        return;
    }
    let n4 = p.cols / 4u;
    let toks = four_from(tok, p.n_tok) * n4;
    let row = (p.at + k) * (p.stride / 4u);
    let row2 = (p.at + k + 4u) * (p.stride / 4u);
    var hash = vec4<u32>();
    if (DROP == 1u) {
        hash = vec4<u32>(dropout_row(tok), dropout_row(tok + 1u), dropout_row(tok + 2u),
                         dropout_row(tok + 3u));
    }
    var sum = mat4x4<f32>(); // a column a row t
    var sum2 = mat4x4<f32>();
    for (var c = 0u; c < n4; c++) {
        let at = toks + c;
        var v = mat4x4<f32>(x[at.x], x[at.y], x[at.z], x[at.w]);
        if (DROP == 1u) {
            v = mat4x4<f32>(v[0] * dropout_factors(hash.x, c), v[1] * dropout_factors(hash.y, c),
                            v[2] * dropout_factors(hash.z, c), v[3] * dropout_factors(hash.w, c));
        }
        sum += m_four(row + c) * v;
        sum2 += m_four(row2 + c) * v;
    }
    put_four(tok, k, sum);
    put_four(tok, k + 4u, sum2);
}
//!else

override WG : u32 = 128u; // a power of 2, at most 128

var<workgroup> parts : array<mat4x4<f32>, 128>; // a thread's sums of 4 rows t and 4 rows of M
var<workgroup> some : array<f32, 128>;          // of the 16 sums, those of 16 threads

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let tok_tiles = (p.n_tok + 3u) / 4u;
    let group = flat_group(wid, num);
    let tok0 = group % tok_tiles * 4u;
    let k0 = group / tok_tiles * 16u;
    if (k0 >= p.rank) {
        return;
    }
    let n4 = p.cols / 4u;
    let most = p.n_tok - 1u;
    let x0 = min(tok0, most) * n4;
    let x1 = min(tok0 + 1u, most) * n4;
    let x2 = min(tok0 + 2u, most) * n4;
    let x3 = min(tok0 + 3u, most) * n4;
    var hash = vec4<u32>();
    if (DROP == 1u) {
        hash = vec4<u32>(dropout_row(tok0), dropout_row(tok0 + 1u), dropout_row(tok0 + 2u),
                         dropout_row(tok0 + 3u));
    }
    var s0 = mat4x4<f32>(); // a column a row of M, a row a t
    var s1 = mat4x4<f32>();
    var s2 = mat4x4<f32>();
    var s3 = mat4x4<f32>();
    for (var i = lid; i < n4; i += WG) {
        var v = mat4x4<f32>(x[x0 + i], x[x1 + i], x[x2 + i], x[x3 + i]);
        if (DROP == 1u) {
            v[0] *= dropout_factors(hash.x, i);
            v[1] *= dropout_factors(hash.y, i);
            v[2] *= dropout_factors(hash.z, i);
            v[3] *= dropout_factors(hash.w, i);
        }
        s0 += four(v, k0, i);
        s1 += four(v, k0 + 4u, i);
        if (k0 + 8u < p.rank) {
            s2 += four(v, k0 + 8u, i);
            s3 += four(v, k0 + 12u, i);
        }
    }
    finish(s0, tok0, k0, lid);
    finish(s1, tok0, k0 + 4u, lid);
    finish(s2, tok0, k0 + 8u, lid);
    finish(s3, tok0, k0 + 12u, lid);
}

// The products of four rows t with four rows of M, in four columns.
fn four(v : mat4x4<f32>, k : u32, i : u32) -> mat4x4<f32> {
    let n = p.stride / 4u;
    let at = (p.at + k) * n + i;
    return mat4x4<f32>(m[at] * v, m[at + n] * v, m[at + 2u * n] * v, m[at + 3u * n] * v);
}

fn finish(s : mat4x4<f32>, tok0 : u32, k : u32, lid : u32) {
    let i = lid % 16u;
    let tok = i / 4u;
    parts[lid] = s;
    workgroupBarrier();
    var sum = 0.0;
    for (var j = lid / 16u * 16u; j < lid / 16u * 16u + 16u; j++) {
        sum += parts[j][i % 4u][tok];
    }
    if (WG > 16u) {
        some[lid] = sum;
        workgroupBarrier();
        sum = 0.0;
        for (var j = i; j < WG; j += 16u) {
            sum += some[j];
        }
    }
    if (lid < 16u && tok0 + tok < p.n_tok && k + i % 4u < p.rank) {
        z[(tok0 + tok) * p.z_stride + p.at + k + i % 4u] = sum;
    }
    workgroupBarrier();
}
//!end
