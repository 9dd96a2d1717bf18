// lanes - a workgroup is WG / LANES row groups of LANES lanes, both powers of two, WG <= 256
// (subgroup: 512); a row group adds up. Two sums need a barrier between them.
override WG : u32 = 64u;
override LANES : u32 = 32u;
override R : u32 = 4u; // rows of W that a row group takes together, at most four

//!if tier == subgroup
enable subgroups;
override SMALLEST : u32 = 4u;   // no subgroup of the device is smaller; the host knows it
override GREATEST : u32 = 128u; // and none is larger

var<workgroup> lane_sums : array<vec4<f32>, 128>; // subgroups have 4 lanes or more

fn subgroup_lanes() -> u32 {
    if (SMALLEST == GREATEST) {
        // so that compilers know it: dividing by a number that is counted takes long
        return SMALLEST;
    }
    let ones = countOneBits(subgroupBallot(true));
    return ones.x + ones.y + ones.z + ones.w;
}

// With that of the lane `half` away; only the first n numbers count.
fn add_other(s : vec4<f32>, n : u32, half : u32) -> vec4<f32> {
    if (n <= 1u) {
        return vec4<f32>(s.x + subgroupShuffleXor(s.x, half), 0.0, 0.0, 0.0);
    }
    if (n <= 2u) {
        return vec4<f32>(s.xy + subgroupShuffleXor(s.xy, half), 0.0, 0.0);
    }
    if (n <= 3u) {
        return vec4<f32>(s.xyz + subgroupShuffleXor(s.xyz, half), 0.0);
    }
    return s + subgroupShuffleXor(s, half);
}

// Of the `lanes` lanes that it is one of, at most a subgroup's.
fn add_near(sum : vec4<f32>, n : u32, lanes : u32) -> vec4<f32> {
    var s = sum;
    if (lanes >= 128u) {
        s = add_other(s, n, 64u);
    }
    if (lanes >= 64u) {
        s = add_other(s, n, 32u);
    }
    if (lanes >= 32u) {
        s = add_other(s, n, 16u);
    }
    if (lanes >= 16u) {
        s = add_other(s, n, 8u);
    }
    if (lanes >= 8u) {
        s = add_other(s, n, 4u);
    }
    if (lanes >= 4u) {
        s = add_other(s, n, 2u);
    }
    if (lanes >= 2u) {
        s = add_other(s, n, 1u);
    }
    return s;
}

// Every lane learns the sums of the first n numbers of the `lanes` lanes it is one of; `id` is its
// number in the workgroup. Both n and lanes are known before it runs: compilers leave out what is
// not needed.
fn add_some(sum : vec4<f32>, n : u32, id : u32, lanes : u32) -> vec4<f32> {
    if (lanes <= SMALLEST) {
        return add_near(sum, n, lanes);
    }
    var s = sum;
    let size = min(subgroup_lanes(), lanes);
    if (SMALLEST < GREATEST) {
        for (var half = min(lanes, GREATEST) / 2u; half >= SMALLEST; half /= 2u) {
            s = select(s, add_other(s, n, half), half < size);
        }
    }
    s = add_near(s, n, SMALLEST);
    if (id % size == 0u) {
        lane_sums[id / size] = s;
    }
    workgroupBarrier();
    let first = (id - id % lanes) / size;
    var total = lane_sums[first];
    for (var i = 1u; i < 128u; i++) {
        if (i >= lanes / size) {
            break;
        }
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
//!else
var<workgroup> lane_sums : array<vec4<f32>, 256>;

// Every lane learns the sum of the `lanes` lanes it is one of; `id` is its number in the workgroup.
fn add_over(sum : vec4<f32>, id : u32, lanes : u32) -> vec4<f32> {
    lane_sums[id] = sum;
    workgroupBarrier();
    for (var half = lanes / 2u; half > 0u; half /= 2u) {
        if (id % lanes < half) {
            lane_sums[id] += lane_sums[id + half];
        }
        workgroupBarrier();
    }
    return lane_sums[id - id % lanes];
}

// The first n numbers, and others, of a row group.
fn add_some(sum : vec4<f32>, n : u32, id : u32, lanes : u32) -> vec4<f32> {
    return add_over(sum, id, lanes);
}

fn add_lanes(sum : vec4<f32>, id : u32) -> vec4<f32> {
    return add_over(sum, id, LANES);
}
//!end
