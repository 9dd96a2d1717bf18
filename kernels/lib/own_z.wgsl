// own_z - adapters of one matrix where every workgroup makes z = A x for itself, which is cheaper than a dispatch that all would
// wait for where A is small. Needs own_x(i): columns 4i .. 4i + 3 of the row of x; lib/lanes; Params with cols, rank (at most 256),
// b_rows and b_scales, see lib/lora; the buffers a (rank rows of whole eights f32) and b.
var<workgroup> own : array<f32, 256>;

// The whole workgroup takes part. Row j of the four of a team is as many rows on as there are teams, so that few rows are
// spread over all of them.
fn make_z(id : u32) {
    let n = (p.cols + 7u) / 8u * 2u;
    let teams = WG / LANES;
    let lane = id % LANES;
    for (var k = 0u; k < p.rank; k += 4u * teams) {
        let row = vec4<u32>(k + id / LANES) + vec4<u32>(0u, teams, 2u * teams, 3u * teams);
        let at = min(row, vec4<u32>(p.rank - 1u)) * n;
        var mine = vec4<f32>();
        for (var i = lane; i < n; i += LANES) {
            let v = own_x(i);
            mine.x += dot(a[at.x + i], v);
            if (k + teams < p.rank) {
                mine.y += dot(a[at.y + i], v);
            }
            if (k + 2u * teams < p.rank) {
                mine.z += dot(a[at.z + i], v);
                mine.w += dot(a[at.w + i], v);
            }
        }
        let sum = add_over(mine, id, LANES);
        for (var r = lane; r < 4u; r += LANES) {
            if (row[r] < p.rank) {
                own[row[r]] = sum[r] * b[p.b_scales + row[r]];
            }
        }
        workgroupBarrier(); // before the next sum, and before z is read
    }
}

// This lane's part for four rows.
fn own_rows(rows : vec4<u32>, lane : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var k = lane; k < p.rank; k += LANES) {
        let at = rows + k * p.b_rows;
        sum += own[k] * vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
    }
    return sum;
}
