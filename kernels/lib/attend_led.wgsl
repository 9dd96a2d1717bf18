// attend_led - the kernels attend_led and attend_shared_led but for their caches and add_over(): the queries (and keys and values) come of what was known of them
// before the last branch joined the stream, as lib/ahead has it, so the join happens here.
//!include lib/attend.wgsl
//!include lib/four.wgsl
//!include lib/joining.wgsl
//!include lib/ahead.wgsl
//!include lib/put_ahead.wgsl
//!include lib/share_z.wgsl
struct Params {
    rows : u32,
    n_head : u32,
    n_kv_head : u32,
    head_dim : u32,
    n_slots : u32,
    window : u32, // 0: all
    pos_offset : u32,
    n_split : u32,
    n_pair : u32,
    q_weight_at : u32, // in vectors, in vec4s
    k_weight_at : u32,
    v_from_k : u32, // 1: values are made of the keys as they come
    rank : u32,     // LORA: rows of A
    cols : u32,     // of the stream
    has_scale : u32,
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    writer : u32, // the workgroup that writes the stream: the one whose share is the shortest
    n_more : u32, // numbers behind the stream that go on with it, at most WG
    x_more : u32, // where they are behind x and behind the branch, in f32
    branch_more : u32,
    eps : f32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(2) var<storage, read> table : array<f32>;
@group(0) @binding(3) var<storage, read> vectors : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> branch : array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> a : array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> to : array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> partial : array<vec4<f32>>;

fn q_weight(i : u32) -> vec4<f32> {
    return vectors[p.q_weight_at + i];
}

fn post_of(i : u32) -> vec4<f32> {
    return vectors[p.post_at + i];
}

fn factor() -> f32 {
    if (p.has_scale != 0u) {
        return vectors[p.scale_at].x;
    }
    return 1.0;
}

// What a thread needs of the queries in its first turn, on its way while the stream is joined.
struct Early {
    x_a : vec4<f32>,
    x_b : vec4<f32>,
    branch_a : vec4<f32>,
    branch_b : vec4<f32>,
    w : Weights,
}

fn ask_early(part : Part, lid : u32) -> Early {
    let half = head4() / 2u;
    let i = lid % (WG / HEADS);
    if (i >= half) {
        return Early();
    }
    let at = p.cols / 4u + query_at(part, lid) + i;
    return Early(x[at], x[at + half], branch[at], branch[at + half], query_weights(i));
}

// As put_queries().
fn put_led_queries(part : Part, e : Early, lid : u32) {
    let half = head4() / 2u;
    let threads = WG / HEADS;
    let at = query_at(part, lid);
    let first = lid % threads;
    var sum = 0.0;
    if (first < half) {
        sum = put_query(lid / threads, first, known_and_new(e.x_a, e.branch_a), known_and_new(e.x_b, e.branch_b), e.w);
    }
    for (var turn = 1u; turn < MOST_TURNS; turn++) {
        let i = first + turn * threads;
        if (i >= half) {
            break;
        }
        sum += put_query(lid / threads, i, led_four(at + i), led_four(at + i + half), query_weights(i));
    }
    squares[lid] = sum;
}

// vec4s of the stream that a thread has, every WG-th; past the end nothing.
fn v_at(i : u32) -> vec4<f32> {
    if (i < p.cols / 4u) {
        return x[i];
    }
    return vec4<f32>();
}

fn raw_at(i : u32) -> vec4<f32> {
    if (i < p.cols / 4u) {
        return branch[i];
    }
    return vec4<f32>();
}

fn branch_at(raw : vec4<f32>, i : u32) -> vec4<f32> {
    return raw * post_of(min(i, p.cols / 4u - 1u));
}

fn put_at(i : u32, v : vec4<f32>, b : vec4<f32>) {
    if (i < p.cols / 4u) {
        to[i] = ahead.factor * (v + ahead.r * b);
    }
}

// The whole workgroup takes part; one of them writes the next state.
fn join_stream(lid : u32, writes : bool) {
    let v = Four(v_at(lid), v_at(lid + WG), v_at(lid + 2u * WG), v_at(lid + 3u * WG));
    let raw = Four(raw_at(lid), raw_at(lid + WG), raw_at(lid + 2u * WG), raw_at(lid + 3u * WG));
    let b = Four(branch_at(raw.a, lid), branch_at(raw.b, lid + WG), branch_at(raw.c, lid + 2u * WG), branch_at(raw.d, lid + 3u * WG));
    let i = p.x_more + lid;
    let j = p.branch_more + lid;
    var more = vec2<f32>(); // on its way too
    if (writes && lid < p.n_more) {
        more = vec2<f32>(x[i >> 2u][i & 3u], branch[j >> 2u][j & 3u]);
    }
    ahead = joining_from((sums_of(v.a, raw.a, b.a) + sums_of(v.b, raw.b, b.b)) + (sums_of(v.c, raw.c, b.c) + sums_of(v.d, raw.d, b.d)), 0u, lid);
    if (!writes) {
        return;
    }
    put_at(lid, v.a, b.a);
    put_at(lid + WG, v.b, b.b);
    put_at(lid + 2u * WG, v.c, b.c);
    put_at(lid + 3u * WG, v.d, b.d);
    if (lid < p.n_more) {
        put_ahead(lid, ahead.factor * (more.x + ahead.r * more.y));
    }
}
