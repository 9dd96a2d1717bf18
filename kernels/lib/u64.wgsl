// u64 - 64-bit unsigned integers as vec2<u32>(low, high). WGSL has none.
fn u64_add(a : vec2<u32>, b : vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn u64_sub(a : vec2<u32>, b : vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn u64_less(a : vec2<u32>, b : vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

// The whole product of two 32-bit numbers, from their 16-bit halves.
fn u64_of_product(a : u32, b : u32) -> vec2<u32> {
    let ll = (a & 0xffffu) * (b & 0xffffu);
    let lh = (a & 0xffffu) * (b >> 16u);
    let hl = (a >> 16u) * (b & 0xffffu);
    let mid = (ll >> 16u) + (lh & 0xffffu) + (hl & 0xffffu);
    return vec2<u32>((ll & 0xffffu) | (mid << 16u),
                     (a >> 16u) * (b >> 16u) + (lh >> 16u) + (hl >> 16u) + (mid >> 16u));
}

// a * b modulo 2^64.
fn u64_mul(a : vec2<u32>, b : vec2<u32>) -> vec2<u32> {
    let low = u64_of_product(a.x, b.x);
    return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}

// a >> n for 0 < n < 32.
fn u64_shift_right(a : vec2<u32>, n : u32) -> vec2<u32> {
    return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);
}
