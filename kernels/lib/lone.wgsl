// lone - kernels in which every thread works for itself: threads counted through, and products of 4 x 4 blocks.
//!include lib/grid.wgsl
//!include lib/four_from.wgsl
const WG : u32 = 16u;

fn lone_thread(wid : vec3<u32>, num : vec3<u32>, id : u32) -> u32 {
    return flat_group(wid, num) * WG + id;
}

// 1 for each of i .. i + 3 that is below n.
fn below(i : u32, n : u32) -> vec4<f32> {
    return select(vec4<f32>(), vec4<f32>(1.0), vec4<u32>(i, i + 1u, i + 2u, i + 3u) < vec4<u32>(n));
}

fn plus_outer(sum : mat4x4<f32>, w : vec4<f32>, v : vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(sum[0] + w * v.x, sum[1] + w * v.y, sum[2] + w * v.z, sum[3] + w * v.w);
}
