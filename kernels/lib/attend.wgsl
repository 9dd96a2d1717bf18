// attend - what comes before attention in the kernels attend and attend_shared: the queries of a workgroup's heads,
// weighted and turned, in workgroup memory. Normalising them is a factor of their scores, which is known later. Needs
// what lib/attention_split.wgsl needs, p also with n_pair and eps, the buffer table, q_weight(i): columns 4i .. 4i + 3 of
// what the queries are multiplied with, and q_four(i, turn, half): vec4 i of the queries, where a thread's first turn asks for one in the
// first half of a head (0) and one in the second (1).
//!include lib/attention_split.wgsl

var<workgroup> queries : array<vec4<f32>, 1024>; // HEADS x head_dim / 4
var<workgroup> squares : array<f32, WG>; // of the queries, by threads
var<workgroup> some : array<f32, 80>;    // eight sums of them for each of 8 heads; of the key's and the value's in `spread`

// Columns 4i .. 4i + 3 of a head, and those half a head later that they are turned with.
struct Turned {
    a : vec4<f32>,
    b : vec4<f32>,
}

fn query(part : Part, head : u32, d : u32) -> vec4<f32> {
    return queries[head * head4() + d];
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
    return inverseSqrt(total / f32(4u * head4()) + p.eps);
}

// Of eight sums in `some`.
fn sum_eight(first : u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < 8u; i++) {
        sum += some[first + i];
    }
    return sum;
}

fn query_scale(head : u32) -> f32 {
    return inverse_rms(sum_eight(8u * head));
}

// Where a thread's head begins in the queries: WG / HEADS threads share one.
fn query_at(part : Part, lid : u32) -> u32 {
    return (part.row_q + min(lid / (WG / HEADS), part.n_head - 1u)) * head4();
}

// A barrier later sum_queries() may be called.
fn put_queries(part : Part, lid : u32) {
    let n4 = head4();
    let threads = WG / HEADS;
    let mine = lid / threads;
    let at = query_at(part, lid);
    var sum = 0.0;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let i = lid % threads + turn * threads;
        if (i >= n4 / 2u) {
            break;
        }
        let j = i + n4 / 2u;
        let a = q_four(at + i, turn, 0u);
        let b = q_four(at + j, turn, 1u);
        sum += dot(a, a) + dot(b, b);
        let f = turned(a * q_weight(i), b * q_weight(j), i);
        queries[mine * n4 + i] = f.a;
        queries[mine * n4 + j] = f.b;
    }
    squares[lid] = sum;
}

// Only so many threads of a head had columns.
fn sum_queries(lid : u32) {
    if (lid < 8u * HEADS) {
        let threads = min(WG / HEADS, head4() / 2u);
        var sum = 0.0;
        for (var turn = 0u; turn < MOST_TURNS; turn++) {
            let i = lid % 8u + 8u * turn;
            if (i >= threads) {
                break;
            }
            sum += squares[lid / 8u * (WG / HEADS) + i];
        }
        some[lid] = sum;
    }
}
