// joining - how the residual stream goes on:  to = (x + norm(branch) post) factor,  norm(v) = v / rms(v).
// Needs Params with cols, has_branch and eps; the buffers x and branch; post_of(i), columns 4i .. 4i + 3 of post; factor();
// lib/lanes.
// One pass gives all sums, since  |to|^2 = factor^2 (|x|^2 + 2 r x.b + r^2 |b|^2)  with  b = branch post
// and r = 1 / rms(branch).
struct Joining {
    at : u32,      // of the row
    r : f32,       // 1 / rms(branch)
    factor : f32,
    inverse : f32, // 1 / rms(to)
}

// What four columns give to the sums; b = raw post.
fn sums_of(v : vec4<f32>, raw : vec4<f32>, b : vec4<f32>) -> vec4<f32> {
    return vec4<f32>(dot(v, v), dot(v, b), dot(b, b), dot(raw, raw));
}

// From the sums of every thread.
fn joining_from(sums : vec4<f32>, at : u32, id : u32) -> Joining {
    let f = factor(); // on its way while all wait for the sums
    let mean = add_over(sums, id, WG) / f32(p.cols);
    let r = inverseSqrt(mean.w + p.eps);
    let square = max(mean.x + 2.0 * r * mean.y + r * r * mean.z, 0.0);
    return Joining(at, r, f, inverseSqrt(f * f * square + p.eps));
}

// What columns 4i .. 4i + 3 of the row give to the sums, nothing past its end.
fn sums_at(at : u32, i : u32) -> vec4<f32> {
    let n = p.cols / 4u;
    let k = min(i, n - 1u);
    let v = x[at + k];
    var sums = vec4<f32>(dot(v, v), 0.0, 0.0, 0.0);
    if (p.has_branch != 0u) {
        let raw = branch[at + k];
        sums = sums_of(v, raw, raw * post_of(k));
    }
    return select(vec4<f32>(), sums, vec4<bool>(i < n));
}

// Four loads of each are on their way at a time.
fn begin_joining(at : u32, id : u32) -> Joining {
    var sums = vec4<f32>();
    for (var i = id; i < p.cols / 4u; i += 4u * WG) {
        sums += (sums_at(at, i) + sums_at(at, i + WG)) + (sums_at(at, i + 2u * WG) + sums_at(at, i + 3u * WG));
    }
    return joining_from(sums, at, id);
}

fn joined(j : Joining, i : u32) -> vec4<f32> {
    var v = x[j.at + i];
    if (p.has_branch != 0u) {
        v += branch[j.at + i] * j.r * post_of(i);
    }
    return v * j.factor;
}
