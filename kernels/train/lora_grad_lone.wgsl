// lora_grad_lone - out[k][j] += s * sum over rows t of z[t][k] (m * x)[t][j]: the gradients of A and B; DROP 0: m is 1
//   (training)
//
//   z    read    n x z_stride f32, from column z_at      grid   a thread per matrix, 8 columns k and
//   x    read    rows of `wide` f32                             4 columns j, j first
//   ids  read    n i32                                   bytes  x once per 8 k, z once per 4 j
//   out  update  n_mat x (rank x wide) f32               needs  wide, z_stride, z_at % 4 == 0
//
// For devices in software, as matmul.lone. out[k][j] lies at k out_k + j out_j. MANY: row t counts for the matrix ids[t],
// and x has a row for each of n_used rows in turn (by_slot 0) or for every t.
// Tolerance 1e-10 nmse: f32 sums here, f64 there.
//!include lib/lone.wgsl
//!include train/lora_grad_io.wgsl

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
    let i = lone_thread(wid, num, id);
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
