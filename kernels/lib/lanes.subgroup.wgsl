// lanes.subgroup - a workgroup is WG / LANES teams of LANES lanes, both powers of two, WG <= 512; a
// team adds up.
override WG : u32 = 64u;
override LANES : u32 = 32u;
override R : u32 = 4u;          // rows of W that a team takes together, at most four
//!include lib/sums.subgroup.wgsl

fn add_over(sum : vec4<f32>, id : u32, lanes : u32) -> vec4<f32> {
    return add_some(sum, 4u, id, lanes);
}

fn add_lanes(sum : vec4<f32>, id : u32) -> vec4<f32> {
    return add_some(sum, R, id, LANES);
}
