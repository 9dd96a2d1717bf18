// join_sums.subgroup - the sums of a workgroup that joins.
//!include lib/sums.subgroup.wgsl
fn add_over(sum : vec4<f32>, id : u32, lanes : u32) -> vec4<f32> {
    return add_some(sum, 4u, id, lanes);
}

// As lib/sum_z.
fn sum_z(v : f32, lid : u32) -> f32 {
    return add_some(vec4<f32>(v, 0.0, 0.0, 0.0), 1u, lid, 16u).x;
}
