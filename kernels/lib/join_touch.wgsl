// join_touch - the kernel of that name without its sum, which a tier chooses.
//!include lib/join_row.wgsl
//!include lib/join_vectors.wgsl
//!include lib/touch.wgsl

struct Params {
    cols : u32,
    has_branch : u32,
    has_scale : u32,
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    unread : u32, // a vec4 of s behind the row
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> w2 : array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> w3 : array<vec4<u32>>;
@group(0) @binding(7) var<storage, read> w4 : array<vec4<u32>>;
@group(0) @binding(8) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(9) var<storage, read_write> s : array<vec4<u32>>;

fn normed() -> bool {
    return true;
}

fn finish(i : u32, c : Columns, j : Joining) {
    let state = next_state(c, j);
    let v = leading(c, j, state);
    put_state(i, state);
    put_run(0u, p.cols, i / 4u, settle(v.a, v.b, v.c, v.d));
}

// Place k of each matrix that has one.
fn touch(k : u32) {
    let at = k * APART;
    var seen = 0u;
    if (at < arrayLength(&w)) {
        seen = w[at].x;
    }
    if (at < arrayLength(&w2)) {
        seen ^= w2[at].x;
    }
    if (at < arrayLength(&w3)) {
        seen ^= w3[at].x;
    }
    if (at < arrayLength(&w4)) {
        seen ^= w4[at].x;
    }
    if (is_odd(seen)) {
        s[p.unread] = vec4<u32>(seen);
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(local_invocation_index) id : u32) {
    if (wid.x > 0u) {
        touch(id);
        return;
    }
    join_row(0u, id);
}
