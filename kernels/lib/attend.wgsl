// attend - what comes before attention in the kernels attend and attend_shared: the queries of a workgroup's
// heads, normalised, weighted and turned, in workgroup memory. `spread` holds threads' squares meanwhile. Needs what lib/attention_split.wgsl needs, p also
// with n_pair and eps, and the buffers table, q_w and q.
//!include lib/attention_split.wgsl

var<workgroup> queries : array<vec4<f32>, 1024>; // HEADS x head_dim / 4
var<workgroup> some : array<f32, 80>; // eight sums for each of 8 heads, for the key and the value

// Columns 4i .. 4i + 3 of a head, and those half a head later that they are turned with.
struct Turned {
    a : vec4<f32>,
    b : vec4<f32>,
}

fn query(part : Part, head : u32, d : u32) -> vec4<f32> {
    return queries[head * (p.head_dim / 4u) + d];
}

fn turned(a : vec4<f32>, b : vec4<f32>, i : u32) -> Turned {
    var out = Turned(a, b);
    for (var c = 0u; c < 4u; c++) {
        let pair = 4u * i + c;
        if (pair < p.n_pair) {
            let cosine = table[pair];
            let sine = table[p.n_pair + pair];
            out.a[c] = a[c] * cosine - b[c] * sine;
            out.b[c] = a[c] * sine + b[c] * cosine;
        }
    }
    return out;
}

fn inverse_rms(total : f32) -> f32 {
    return inverseSqrt(total / f32(p.head_dim) + p.eps);
}

// The sum of n threads' numbers.
fn sum_some(first : u32, n : u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < n; i++) {
        sum += spread[first + i];
    }
    return sum;
}

// Of eight sums in `some`.
fn sum_eight(first : u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < 8u; i++) {
        sum += some[first + i];
    }
    return sum;
}

// This thread's squares of its head; WG / HEADS threads share one.
fn query_squares(part : Part, lid : u32) -> f32 {
    let n4 = p.head_dim / 4u;
    let threads = WG / HEADS;
    let head = min(lid / threads, part.n_head - 1u);
    var sum = 0.0;
    for (var i = lid % threads; i < n4; i += threads) {
        let x = q[(part.row_q + head) * n4 + i];
        sum += dot(x, x);
    }
    return sum;
}

// After the squares' sums are in `some`, eight a head.
fn put_queries(part : Part, lid : u32) {
    let n4 = p.head_dim / 4u;
    let threads = WG / HEADS;
    let mine = lid / threads;
    let head = min(mine, part.n_head - 1u);
    let inverse = inverse_rms(sum_eight(8u * mine));
    for (var i = lid % threads; i < n4 / 2u; i += threads) {
        let j = i + n4 / 2u;
        let at = (part.row_q + head) * n4;
        let f = turned(q[at + i] * inverse * q_w[i], q[at + j] * inverse * q_w[j], i);
        queries[mine * n4 + i] = f.a;
        queries[mine * n4 + j] = f.b;
    }
}
