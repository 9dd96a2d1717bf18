// four_from - i .. i + 3, all below n; without any, 0.
fn four_from(i : u32, n : u32) -> vec4<u32> {
    return min(vec4<u32>(i, i + 1u, i + 2u, i + 3u), vec4<u32>(max(n, 1u) - 1u));
}
