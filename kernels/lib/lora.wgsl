// lora - the adapters of a linear, all at once: sum over k of s_k z_k B[:, k], where z = A x is
// made before. Needs Params with rank (of all together, a multiple of 8; 0: none), b_rows (rows of
// one whole B) and b_scales, and the buffers z (rank f32 a row) and b: for each matrix rank x
// b_rows f32, B transposed; at b_scales the rank s_k.

//!include lib/base.wgsl

// The same where Params has it for each of several matrices: p.lora[0] of the first.
struct Adapter {
    rank : u32, // 0: the matrix has no adapter
    b_rows : u32,
    b_scales : u32,
    z_at : u32, // where its z begins, in f32
}

// This lane's part for four rows of matrix `mat`; z begins at z_base.
fn lora_rows(mat : u32, rows : vec4<u32>, z_base : u32, lane : u32, lanes : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var k = lane; k < p.rank; k += lanes) {
        let at = vec4<u32>((mat * p.rank + k) * p.b_rows) + rows;
        sum += z[z_base + k] * b[p.b_scales + k] * vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
    }
    return sum;
}

// What the adapters of a matrix in one buffer add to R rows of it, this lane's part; no more of B
// is read. Needs Params with rows and rank; z_of(k): number k of z; the buffer b, in which the
// scales follow B.
fn adapter_rows(rows : vec4<u32>, lane : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let k = lane + turn * LANES;
        if (k >= p.rank) {
            break;
        }
        let at = rows + vec4<u32>(k * p.rows);
        var of_b = vec4<f32>(b[at.x], 0.0, 0.0, 0.0);
        if (R > 1u) {
            of_b.y = b[at.y];
        }
        if (R > 2u) {
            of_b.z = b[at.z];
            of_b.w = b[at.w];
        }
        sum += z_of(k) * b[p.rank * p.rows + k] * of_b;
    }
    return sum;
}

// ---- z = A o, where o is attention's result ----

// A workgroup has some columns of o, and sixteen threads share a row of A.
// Needs Params with rank; o_four(i): vec4 i of those columns; put_z(k, z); the buffer a; and
// `spread` in workgroup memory, a number for each thread or more, which is free for use.

// The sum of sixteen threads, for the first of them. The whole workgroup takes part; before the
// next one it needs a barrier.
fn sum_sixteen(v : f32, lid : u32) -> f32 {
    spread[lid] = v;
    workgroupBarrier();
    var sum = 0.0;
    if (lid % 16u == 0u) {
        for (var i = 0u; i < 16u; i++) {
            sum += spread[lid + i];
        }
    }
    return sum;
}

const Z_LANES : u32 = 16u;

var<private> a_mine : array<vec4<f32>, 4>; // of the first rows

// A thread's vec4 i of row k, where the workgroup's n vec4s are those from `col` on of a row of
// `wide`.
fn a_of(k : u32, i : u32, col : u32, n : u32, wide : u32) -> vec4<f32> {
    if (i >= n) {
        return vec4<f32>();
    }
    return a[min(k, p.rank - 1u) * wide + col + i];
}

// Loads the first rows of A for make_z(), while o is still being computed.
fn begin_z(col : u32, n : u32, wide : u32, lid : u32) {
    for (var i = 0u; i < 4u; i++) {
        a_mine[i] = a_of(lid / Z_LANES, lid % Z_LANES + Z_LANES * i, col, n, wide);
    }
}

// The whole workgroup takes part, and begin_z() was called.
fn make_z(col : u32, n : u32, wide : u32, lid : u32) {
    let lane = lid % Z_LANES;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let first = turn * (WG / Z_LANES);
        if (first >= p.rank) {
            break;
        }
        let k = first + lid / Z_LANES;
        var sum = 0.0;
        for (var i = 0u; i < 4u; i++) {
            let at = lane + Z_LANES * i;
            if (turn > 0u) {
                a_mine[i] = a_of(k, at, col, n, wide);
            }
            sum += dot(a_mine[i], o_four(min(at, n - 1u)));
        }
        for (var i = lane + 4u * Z_LANES; i < n; i += Z_LANES) {
            sum += dot(a_of(k, i, col, n, wide), o_four(i));
        }
        let z = sum_sixteen(sum, lid);
        if (lane == 0u && k < p.rank) {
            put_z(k, z);
        }
        workgroupBarrier(); // before the next rows
    }
}
