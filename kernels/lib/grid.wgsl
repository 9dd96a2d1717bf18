// grid - more than 65,535 workgroups: the host spreads them over x and y.
fn flat_group(wid : vec3<u32>, num : vec3<u32>) -> u32 {
    return wid.x + wid.y * num.x;
}
