// lanes.subgroup - a workgroup is WG / LANES teams of LANES lanes, both powers of two, WG <= 256; a
// team adds up: inside of subgroups, whose size is counted and not assumed, then, where a team is
// larger than a subgroup, through workgroup memory. Two sums need a barrier between them.
override WG : u32 = 64u;
override LANES : u32 = 32u;
override R : u32 = 4u; // rows of W that a team takes together: 1, 2 or 4

var<workgroup> lane_sums : array<vec4<f32>, 64>; // subgroups have 4 lanes or more

// Every lane learns the sum of the `lanes` lanes it is one of; `id` is its number in the workgroup.
fn add_over(sum : vec4<f32>, id : u32, lanes : u32) -> vec4<f32> {
    let ones = countOneBits(subgroupBallot(true));
    let size = min(ones.x + ones.y + ones.z + ones.w, lanes);
    var s = sum;
    for (var half = min(lanes, 128u) / 2u; half > 0u; half /= 2u) {
        s += select(vec4<f32>(), subgroupShuffleXor(s, half), half < size);
    }
    if (id % size == 0u) {
        lane_sums[id / size] = s;
    }
    workgroupBarrier();
    let first = (id - id % lanes) / size;
    var total = lane_sums[first];
    for (var i = 1u; i < lanes / size; i++) {
        total += lane_sums[first + i];
    }
    return total;
}

fn add_lanes(sum : vec4<f32>, id : u32) -> vec4<f32> {
    if (LANES <= 4u) { // no subgroup is smaller; compilers then leave the barrier out
        var quad = sum;
        for (var half = LANES / 2u; half > 0u; half /= 2u) {
            quad += subgroupShuffleXor(quad, half);
        }
        return quad;
    }
    return add_over(sum, id, LANES);
}
