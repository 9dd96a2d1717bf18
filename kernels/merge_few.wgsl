// merge_few - y = sum_s e^(top_s - top) o_s / sum_s e^(top_s - top) total_s, top the largest top_s
//
//   partial  read   rows x n_head x n_split x      grid   a thread for sixteen columns of y, each row in turn
//                   (head_dim + 4) f32             bytes  partial once, y once, s once
//   y        write  rows x n_head x head_dim f32   needs  attention_split's parts, n_split <= 8, head_dim % 16 == 0
//   s        write  y, settled
//
// attention_merge for few shares: a thread weighs them for itself, so that none waits for another.
// Reference: attention() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.
//!include lib/grid.wgsl
//!include lib/four.wgsl
//!include lib/settle.wgsl
//!include lib/put_run.wgsl
//!include lib/turns.wgsl
struct Params {
    n_run : u32, // rows * n_head * head_dim / 16
    cols : u32,  // n_head * head_dim
    head_dim : u32,
    n_split : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> partial : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y : array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> s : array<vec4<u32>>;

const WG : u32 = 64u;

// Sixteen columns of what shares give together, scaled by the largest top so far.
struct Sum {
    o : Four,
    top : f32,
    total : f32,
}

// Share i of those that begin at vec4 `at`, columns from 4 col on. One that is not there, or has no positions, gives nothing.
fn share_of(at : u32, i : u32, col : u32) -> Sum {
    let n4 = p.head_dim / 4u;
    let first = at + min(i, p.n_split - 1u) * (n4 + 1u);
    let end = partial[first + n4].xy;
    let o = Four(partial[first + col], partial[first + col + 1u], partial[first + col + 2u], partial[first + col + 3u]);
    let there = i < p.n_split && end.y > 0.0;
    return Sum(o, select(-3.0e38, end.x, there), select(0.0, end.y, there));
}

// A share without positions may hold anything.
fn part(o : vec4<f32>, f : f32) -> vec4<f32> {
    return select(vec4<f32>(), f * o, vec4<bool>(f > 0.0));
}

fn both(a : Sum, b : Sum) -> Sum {
    let top = max(a.top, b.top);
    let f = select(0.0, exp(a.top - top), a.total > 0.0);
    let g = select(0.0, exp(b.top - top), b.total > 0.0);
    return Sum(Four(part(a.o.a, f) + part(b.o.a, g), part(a.o.b, f) + part(b.o.b, g),
                    part(a.o.c, f) + part(b.o.c, g), part(a.o.d, f) + part(b.o.d, g)), top, f * a.total + g * b.total);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let run = flat_group(wid, num) * WG + id;
    if (run >= p.n_run) {
        return;
    }
    let n4 = p.head_dim / 4u;
    let head = 4u * run / n4;
    let at = head * p.n_split * (n4 + 1u);
    let col = 4u * run - head * n4;
    var sum = both(share_of(at, 0u, col), share_of(at, 1u, col)); // two loads of each on their way at a time
    for (var turn = 1u; turn < MOST_TURNS; turn++) {
        if (2u * turn >= p.n_split) {
            break;
        }
        sum = both(sum, both(share_of(at, 2u * turn, col), share_of(at, 2u * turn + 1u, col)));
    }
    let f = 1.0 / sum.total;
    let o = Four(f * sum.o.a, f * sum.o.b, f * sum.o.c, f * sum.o.d);
    y[4u * run] = o.a;
    y[4u * run + 1u] = o.b;
    y[4u * run + 2u] = o.c;
    y[4u * run + 3u] = o.d;
    let runs = p.cols / 16u;
    let row = run / runs;
    put_run(4u * row * runs, p.cols, run - row * runs, settle(o.a, o.b, o.c, o.d));
}
