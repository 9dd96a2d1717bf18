// lanes.subgroup - a workgroup is WG / LANES teams of LANES lanes, both powers of two, WG <= 512; a
// team adds up: inside of subgroups, whose size is counted and not assumed, then, where a team is
// larger than a subgroup, through workgroup memory. Two sums need a barrier between them.
override WG : u32 = 64u;
override LANES : u32 = 32u;
override R : u32 = 4u;        // rows of W that a team takes together: 1, 2 or 4
override SMALLEST : u32 = 4u; // no subgroup of the device is smaller; the host knows it

var<workgroup> lane_sums : array<vec4<f32>, 128>; // subgroups have 4 lanes or more

// With that of the lane `half` away; only the first n numbers count.
fn add_other(s : vec4<f32>, n : u32, half : u32) -> vec4<f32> {
    if (n <= 1u) {
        return vec4<f32>(s.x + subgroupShuffleXor(s.x, half), 0.0, 0.0, 0.0);
    }
    if (n <= 2u) {
        return vec4<f32>(s.xy + subgroupShuffleXor(s.xy, half), 0.0, 0.0);
    }
    return s + subgroupShuffleXor(s, half);
}

// Every lane learns the sums of the first n numbers of the `lanes` lanes it is one of; `id` is its number in the workgroup. Both
// n and lanes are known before it runs: compilers leave out what is not needed.
fn add_some(sum : vec4<f32>, n : u32, id : u32, lanes : u32) -> vec4<f32> {
    var s = sum;
    if (lanes <= SMALLEST) {
        for (var half = lanes / 2u; half > 0u; half /= 2u) {
            s = add_other(s, n, half);
        }
        return s;
    }
    let ones = countOneBits(subgroupBallot(true));
    let size = min(ones.x + ones.y + ones.z + ones.w, lanes);
    for (var half = min(lanes, 128u) / 2u; half >= SMALLEST; half /= 2u) {
        s = select(s, add_other(s, n, half), half < size);
    }
    for (var half = SMALLEST / 2u; half > 0u; half /= 2u) {
        s = add_other(s, n, half);
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

fn add_over(sum : vec4<f32>, id : u32, lanes : u32) -> vec4<f32> {
    return add_some(sum, 4u, id, lanes);
}

fn add_lanes(sum : vec4<f32>, id : u32) -> vec4<f32> {
    return add_some(sum, R, id, LANES);
}
