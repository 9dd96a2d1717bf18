// lanes - a workgroup is WG / LANES teams of LANES lanes, both powers of two, WG <= 256 (subgroup: 512); a
// team adds up. Two sums need a barrier between them.
override WG : u32 = 64u;
override LANES : u32 = 32u;
override R : u32 = 4u; // rows of W that a team takes together, at most four

//!if tier == subgroup
//!include lib/sums.wgsl

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

// The first n numbers, and others, of a team.
fn add_some(sum : vec4<f32>, n : u32, id : u32, lanes : u32) -> vec4<f32> {
    return add_over(sum, id, lanes);
}

fn add_lanes(sum : vec4<f32>, id : u32) -> vec4<f32> {
    return add_over(sum, id, LANES);
}
//!end
