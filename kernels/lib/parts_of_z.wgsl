// parts_of_z - each workgroup's part of z = A y for who reads y next, where y is made in blocks of R WG / LANES numbers that lie in `made`
// (lib/put_settled). Needs p with rows, part_rank (0: nobody asks), part_at: where the parts begin in y; the buffers a and y.
var<workgroup> z_part : array<f32, 64>; // part_rank of them

// Threads that share a row of A.
fn part_lanes() -> u32 {
    return R * (WG / LANES) / 4u;
}

fn part_four(k : u32, block : u32, id : u32) -> vec4<f32> {
    let col = block * part_lanes() + id % part_lanes();
    if (k >= p.part_rank || col >= p.rows / 4u) {
        return vec4<f32>();
    }
    return a[k * (p.rows / 4u) + col];
}

// What a thread needs first is on its way while the block is made.
fn begin_part(block : u32, id : u32) -> vec4<f32> {
    return part_four(id / part_lanes(), block, id);
}

// The whole workgroup takes part, once the block is made.
fn add_part(first : vec4<f32>, block : u32, id : u32) {
    let lanes = part_lanes();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        if (turn * (WG / lanes) >= p.part_rank) {
            break;
        }
        let k = id / lanes + turn * (WG / lanes);
        var mine = first;
        if (turn > 0u) {
            mine = part_four(k, block, id);
        }
        let sum = add_some(vec4<f32>(dot(mine, made_at(4u * (id % lanes))), 0.0, 0.0, 0.0), 1u, id, lanes).x;
        if (id % lanes == 0u && k < p.part_rank) {
            z_part[k] += sum;
        }
        workgroupBarrier(); // before the next sum
    }
}

// After the last block.
fn put_part(group : u32, id : u32) {
    let lanes = part_lanes();
    for (var k = id / lanes; k < p.part_rank; k += WG / lanes) {
        if (id % lanes == 0u) {
            y[p.part_at + group * p.part_rank + k] = z_part[k];
        }
    }
}
