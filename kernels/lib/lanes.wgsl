// lanes - a workgroup is WG / LANES teams of LANES lanes, both powers of two, WG <= 256; a team
// adds up, once a kernel.
override WG : u32 = 64u;
override LANES : u32 = 32u;

var<workgroup> lane_sums : array<vec4<f32>, 256>;

// Every lane learns the sum of its team; `id` is the lane's number in the workgroup.
fn add_lanes(sum : vec4<f32>, id : u32) -> vec4<f32> {
    lane_sums[id] = sum;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        if (id % LANES < half) {
            lane_sums[id] += lane_sums[id + half];
        }
        workgroupBarrier();
    }
    return lane_sums[id - id % LANES];
}
