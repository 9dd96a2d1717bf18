// lora_grad - out[k][j] += s * sum over rows t of z[t][k] (m * x)[t][j]: the gradients of A and B;
//   DROP 0: m is 1 (training)
//
//   z    read    n x z_stride f32, from column z_at   grid   a workgroup per matrix, 16 columns k
//   x    read    rows of `wide` f32                          and 4 LANES columns j, j first
//   ids  read    n i32                                bytes  x once per 16 k, z once per 4 LANES j
//   out  update  n_mat x (rank x wide) f32            needs  wide, z_stride, z_at % 4 == 0
//
// out[k][j] lies at k out_k + j out_j. MANY: row t counts for the matrix ids[t], and x has a row
// for each of n_used rows in turn (by_slot 0) or for every t. Rows are added in their order, GROUPS
// runs of them side by side.
// Reference: linear_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis tier plain software
//!include lib/base.wgsl

struct Params {
    n : u32,
    wide : u32,
    rank : u32,
    z_stride : u32,
    z_at : u32,
    out_k : u32,
    out_j : u32,
    out_mat : u32, // from matrix to matrix
    n_mat : u32,
    n_used : u32,
    by_slot : u32,
    s : f32,
    salt : u32,
    share : f32,
    kept : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind z read array<vec4<f32>>
//!bind x read array<vec4<f32>>
//!bind ids read array<i32>
//!bind out update array<f32>

//!include train/dropout.wgsl

override MANY : u32 = 0u;

//!if tier == software
// For devices in software, as in matmul. The grid is a thread per matrix, 8 columns k and 4 columns
// j, j first.
const WG : u32 = 16u;

// 1 for each of the rows that counts for the matrix.
fn counts(t : vec4<u32>, mat : u32, is : vec4<f32>) -> vec4<f32> {
    if (MANY == 0u) {
        return is;
    }
    let whose = vec4<u32>(u32(ids[t.x]), u32(ids[t.y]), u32(ids[t.z]), u32(ids[t.w]));
    return select(vec4<f32>(), is, whose == vec4<u32>(mat));
}

fn z_four(at : vec4<u32>, is : vec4<f32>) -> mat4x4<f32> {
    return transpose(mat4x4<f32>(z[at.x] * is.x, z[at.y] * is.y, z[at.z] * is.z, z[at.w] * is.w));
}

// Columns 4 col .. of a row of x, as the adapter sees them.
fn seen(row : u32, col : u32) -> vec4<f32> {
    let v = x[row * (p.wide / 4u) + col];
    if (DROP == 1u) {
        return v * dropout_factors(dropout_row(row), col);
    }
    return v;
}

fn put(base : u32, k : u32, j : u32, v : vec4<f32>) {
    if (k < p.rank) {
        let at = base + k * p.out_k + j * p.out_j;
        out[at] += p.s * v.x;
        out[at + p.out_j] += p.s * v.y;
        out[at + 2u * p.out_j] += p.s * v.z;
        out[at + 3u * p.out_j] += p.s * v.w;
    }
}

fn put_four(base : u32, k : u32, j : u32, m : mat4x4<f32>) {
    put(base, k, j, m[0]);
    put(base, k + 1u, j, m[1]);
    put(base, k + 2u, j, m[2]);
    put(base, k + 3u, j, m[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = single_thread(wid, num, id);
    let n4 = p.wide / 4u;
    let k_tiles = (p.rank + 7u) / 8u;
    let j4 = i % n4;
    let k = i / n4 % k_tiles * 8u;
    let mat = i / n4 / k_tiles;
    if (mat >= p.n_mat) {
        return;
    }
    var sum = mat4x4<f32>(); // a column a k
    var sum2 = mat4x4<f32>();
    for (var t = 0u; t < p.n; t += 4u) {
        let rows = four_from(t, p.n);
        let is = counts(rows, mat, below(t, p.n));
        var row = rows;
        if (MANY == 1u && p.by_slot == 0u) {
            row = rows / p.n_used;
        }
        let v = mat4x4<f32>(seen(row.x, j4), seen(row.y, j4), seen(row.z, j4), seen(row.w, j4));
        let z0 = (rows * p.z_stride + p.z_at + k) / 4u;
        sum += v * z_four(z0, is);
        sum2 += v * z_four(z0 + 1u, is);
    }
    put_four(mat * p.out_mat, k, 4u * j4, sum);
    put_four(mat * p.out_mat, k + 4u, 4u * j4, sum2);
}
//!else

override LANES : u32 = 8u;   // LANES * GROUPS: at most 256
override GROUPS : u32 = 32u; // 1: no barriers

var<workgroup> parts : array<mat4x4<f32>, 256>;

fn plus_four(sum : mat4x4<f32>, v : vec4<f32>, x : vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(sum[0] + v.x * x, sum[1] + v.y * x, sum[2] + v.z * x, sum[3] + v.w * x);
}

fn plus_rows(sum : mat4x4<f32>, at : vec4<u32>, x : mat4x4<f32>) -> mat4x4<f32> {
    return plus_four(plus_four(plus_four(plus_four(sum, z[at.x], x[0]), z[at.y], x[1]), z[at.z],
                               x[2]),
                     z[at.w], x[3]);
}

// Number e of the 4 x 4 from row k and column 4 j4 on.
fn put_one(total : f32, base : u32, k : u32, j4 : u32, e : u32) {
    let row = k + e / 4u;
    if (row < p.rank && j4 < p.wide / 4u) {
        out[base + row * p.out_k + (4u * j4 + e % 4u) * p.out_j] += p.s * total;
    }
}

// j0: the first vector of columns of the workgroup.
fn put(sum : mat4x4<f32>, base : u32, k : u32, j0 : u32, lid : u32) {
    parts[lid] = sum;
    if (GROUPS == 1u) {
        for (var e = 0u; e < 16u; e++) {
            put_one(parts[lid][e / 4u][e % 4u], base, k, j0 + lid, e);
        }
        return;
    }
    workgroupBarrier();
    for (var i = lid; i < 16u * LANES; i += LANES * GROUPS) {
        let e = i % 16u;
        var total = 0.0;
        for (var g = 0u; g < GROUPS; g++) {
            total += parts[i / 16u + g * LANES][e / 4u][e % 4u];
        }
        put_one(total, base, k, j0 + i / 16u, e);
    }
    workgroupBarrier();
}

// Columns 4 col .. of row t of x as the matrix sees them: nothing where the row is not its own, or
// past the last.
fn seen(t : u32, mat : u32, col : u32) -> vec4<f32> {
    if (t >= p.n) {
        return vec4<f32>();
    }
    var row = t;
    if (MANY == 1u) {
        if (u32(ids[t]) != mat) {
            return vec4<f32>();
        }
        row = select(t / p.n_used, t, p.by_slot == 1u);
    }
    let v = x[row * (p.wide / 4u) + col];
    if (DROP == 1u) {
        return v * dropout_factors(dropout_row(row), col);
    }
    return v;
}

// Where its factors from k on are.
fn z_at(t : u32, k : u32) -> u32 {
    return (min(t, p.n - 1u) * p.z_stride + p.z_at + k) / 4u;
}

@compute @workgroup_size(LANES, GROUPS)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let n4 = p.wide / 4u;
    let j_tiles = (n4 + LANES - 1u) / LANES;
    let k_tiles = (p.rank + 15u) / 16u;
    let group = flat_group(wid, num);
    let j0 = group % j_tiles * LANES;
    let k = group / j_tiles % k_tiles * 16u;
    let mat = group / j_tiles / k_tiles;
    if (mat >= p.n_mat) {
        return;
    }
    let col = min(j0 + lid % LANES, n4 - 1u);
    var s0 = mat4x4<f32>(); // four rows k each
    var s1 = mat4x4<f32>();
    var s2 = mat4x4<f32>();
    var s3 = mat4x4<f32>();
    // Four rows at a time, whose loads need not wait for one another.
    for (var t = lid / LANES; t < p.n; t += 4u * GROUPS) {
        let v = mat4x4<f32>(seen(t, mat, col), seen(t + GROUPS, mat, col),
                            seen(t + 2u * GROUPS, mat, col), seen(t + 3u * GROUPS, mat, col));
        let at = vec4<u32>(z_at(t, k), z_at(t + GROUPS, k), z_at(t + 2u * GROUPS, k),
                           z_at(t + 3u * GROUPS, k));
        s0 = plus_rows(s0, at, v);
        s1 = plus_rows(s1, at + 1u, v);
        s2 = plus_rows(s2, at + 2u, v);
        s3 = plus_rows(s3, at + 3u, v);
    }
    let base = mat * p.out_mat;
    put(s0, base, k, j0, lid);
    put(s1, base, k + 4u, j0, lid);
    put(s2, base, k + 8u, j0, lid);
    put(s3, base, k + 12u, j0, lid);
}
//!end
