// lora_grad - out[k][j] += s * sum over rows t of z[t][k] (m * x)[t][j]: the gradients of A and B; DROP 0: m is 1
//   (training)
//
//   z    read    n x z_stride f32, from column z_at      grid   a workgroup per matrix, 16 columns k and
//   x    read    rows of `wide` f32                             4 LANES columns j, j first
//   ids  read    n i32                                   bytes  x once per 16 k, z once per 4 LANES j
//   out  update  n_mat x (rank x wide) f32               needs  wide, z_stride, z_at % 4 == 0
//
// out[k][j] lies at k out_k + j out_j. MANY: row t counts for the matrix ids[t], and x has a row for each of n_used
// rows in turn (by_slot 0) or for every t. Rows are added in their order, GROUPS runs of them side by side.
// Reference: linear_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis tier plain lone
//!if tier == lone
//!include train/lora_grad_lone.wgsl
//!else
//!include lib/grid.wgsl
//!include train/lora_grad_io.wgsl

override LANES : u32 = 8u;   // LANES * GROUPS: at most 256
override GROUPS : u32 = 32u; // 1: nobody waits for others

var<workgroup> parts : array<mat4x4<f32>, 256>;

fn plus_four(sum : mat4x4<f32>, v : vec4<f32>, x : vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(sum[0] + v.x * x, sum[1] + v.y * x, sum[2] + v.z * x, sum[3] + v.w * x);
}

fn plus_rows(sum : mat4x4<f32>, at : vec4<u32>, x : mat4x4<f32>) -> mat4x4<f32> {
    return plus_four(plus_four(plus_four(plus_four(sum, z[at.x], x[0]), z[at.y], x[1]), z[at.z], x[2]),
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

// Columns 4 col .. of row t of x as the matrix sees them: nothing where the row is not its own, or past the last.
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
