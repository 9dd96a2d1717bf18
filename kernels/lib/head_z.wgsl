// head_z - a workgroup's part of z = A o, where it has some columns of o: sixteen threads share a row of A. Needs Params with rank; o_four(i):
// vec4 i of those columns; put_z(k, z); the buffer a; in workgroup memory `spread`, WG numbers or more, which nobody reads.
const Z_LANES : u32 = 16u;

// The whole workgroup takes part. Its n vec4s are those from `col` on of a row of `wide`.
fn make_z(col : u32, n : u32, wide : u32, lid : u32) {
    let lane = lid % Z_LANES;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let first = turn * (WG / Z_LANES);
        if (first >= p.rank) {
            break;
        }
        let k = first + lid / Z_LANES;
        var mine = 0.0;
        for (var i = lane; i < n; i += Z_LANES) {
            mine += dot(a[min(k, p.rank - 1u) * wide + col + i], o_four(i));
        }
        spread[lid] = mine;
        workgroupBarrier();
        if (lane == 0u && k < p.rank) {
            var z = 0.0;
            for (var i = 0u; i < Z_LANES; i++) {
                z += spread[lid + i];
            }
            put_z(k, z);
        }
        workgroupBarrier(); // before the next rows
    }
}
