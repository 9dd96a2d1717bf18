// attend - what comes before attention in the kernels attend and attend_shared: the queries of a workgroup's heads,
// weighted and turned, in workgroup memory. Normalising them is a factor of their scores, which is known later. Needs
// what lib/attention_split.wgsl needs, p also with n_pair and eps, the buffer table, q_weight(i): columns 4i .. 4i + 3 of
// what the queries are multiplied with, and, for put_queries(), q_four(i): vec4 i of the queries.
//!include lib/attention_split.wgsl

override QUERIES : u32 = 1024u; // HEADS x head_dim / 4 at least

var<workgroup> queries : array<vec4<f32>, QUERIES>;
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

// What columns 4i .. 4i + 3 of half a head are turned by.
struct Angles {
    cosine : vec4<f32>,
    sine : vec4<f32>,
}

fn angles(i : u32) -> Angles {
    var out = Angles(vec4<f32>(1.0), vec4<f32>());
    for (var c = 0u; c < 4u; c++) {
        let pair = 4u * i + c;
        if (pair < p.n_pair) {
            out.cosine[c] = table[pair];
            out.sine[c] = table[p.n_pair + pair];
        }
    }
    return out;
}

fn turned(a : vec4<f32>, b : vec4<f32>, by : Angles) -> Turned {
    return Turned(a * by.cosine - b * by.sine, a * by.sine + b * by.cosine);
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

// What a query's columns 4i .. 4i + 3 of both halves are multiplied with.
struct Weights {
    a : vec4<f32>,
    b : vec4<f32>,
    by : Angles,
}

fn query_weights(i : u32) -> Weights {
    return Weights(q_weight(i), q_weight(i + head4() / 2u), angles(i));
}

// Returns what they give to the sum of squares.
fn put_query(head : u32, i : u32, a : vec4<f32>, b : vec4<f32>, w : Weights) -> f32 {
    let f = turned(a * w.a, b * w.b, w.by);
    queries[head * head4() + i] = f.a;
    queries[head * head4() + i + head4() / 2u] = f.b;
    return dot(a, a) + dot(b, b);
}

// A barrier later sum_queries() may be called.
fn put_queries(part : Part, lid : u32) {
    let half = head4() / 2u;
    let threads = WG / HEADS;
    let at = query_at(part, lid);
    var sum = 0.0;
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let i = lid % threads + turn * threads;
        if (i >= half) {
            break;
        }
        sum += put_query(lid / threads, i, q_four(at + i), q_four(at + i + half), query_weights(i));
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
