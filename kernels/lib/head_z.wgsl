// head_z - a workgroup's part of z = A o, where it has some columns of o: sixteen threads share a row of A. Needs Params with rank; o_four(i):
// vec4 i of those columns; put_z(k, z); the buffer a; sum_z(v, lid): of sixteen threads, for
// the first of them, as lib/sum_z has it.
const Z_LANES : u32 = 16u;

var<private> a_mine : array<vec4<f32>, 4>; // of the first rows

// A thread's vec4 i of row k, where the workgroup's n vec4s are those from `col` on of a row of `wide`.
fn a_of(k : u32, i : u32, col : u32, n : u32, wide : u32) -> vec4<f32> {
    if (i >= n) {
        return vec4<f32>();
    }
    return a[min(k, p.rank - 1u) * wide + col + i];
}

// What make_z() needs first is on its way while o is made.
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
        let z = sum_z(sum, lid);
        if (lane == 0u && k < p.rank) {
            put_z(k, z);
        }
        workgroupBarrier(); // before the next rows
    }
}
