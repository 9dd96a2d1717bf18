// router - q = softmax(scores); ids: the n_used largest, of equals the lower index, best first;
//   weights: their q, made to sum 1     (each row)
//
//   scores   read   rows x n_expert f32      grid   one workgroup a row
//   ids      write  rows x n_used i32        bytes  scores once, results once
//   weights  write  rows x n_used f32        needs  n_used <= n_expert <= 1024
//
// Every expert counts those better than itself, four at a time: its rank, without any order of threads.
// Reference: the second half of router() in src/ops/ops_cpu.c. Tolerance: ids equal, weights 1e-9 nmse
// (f32 exponentials here).
//!include lib/grid.wgsl
//!include lib/key.wgsl
//!include lib/best.wgsl
//!include lib/sum.wgsl
struct Params {
    rows : u32,
    n_expert : u32,
    n_used : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> scores : array<f32>;
@group(0) @binding(2) var<storage, read_write> ids : array<u32>;
@group(0) @binding(3) var<storage, read_write> weights : array<f32>;

override WG : u32 = 256u;

var<workgroup> keys : array<vec4<u32>, 256>;
var<workgroup> ranks : array<u32, 1024>; // an expert's own thread writes and reads it

// Of expert e of a row; past the last one a key that none is worse than.
fn key_at(row : u32, e : u32) -> u32 {
    if (e < p.n_expert) {
        return key_of(scores[row * p.n_expert + e]);
    }
    return 0u;
}

fn own_key(e : u32) -> u32 {
    return keys[e >> 2u][e & 3u];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let row = flat_group(wid, num);
    if (row >= p.rows) {
        return;
    }
    let fours = (p.n_expert + 3u) / 4u;
    var mine = vec2<u32>(0u, lid);
    for (var i = lid; i < fours; i += WG) {
        let e = 4u * i;
        let k = vec4<u32>(key_at(row, e), key_at(row, e + 1u), key_at(row, e + 2u), key_at(row, e + 3u));
        keys[i] = k;
        mine.x = max(mine.x, max(max(k.x, k.y), max(k.z, k.w)));
    }
    let top = value_of(workgroup_best(mine, lid).x); // its barriers also publish the keys

    var all = 0.0;
    var used = 0.0;
    for (var e = lid; e < p.n_expert; e += WG) {
        let key = own_key(e);
        var above = vec4<u32>();
        for (var j = 0u; j < fours; j++) {
            let k = keys[j];
            let before = 4u * j + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(e);
            above += select(vec4<u32>(), vec4<u32>(1u), (k > vec4<u32>(key)) | ((k == vec4<u32>(key)) & before));
        }
        let rank = (above.x + above.y) + (above.z + above.w);
        ranks[e] = rank;
        let share = exp(value_of(key) - top);
        all += share;
        used += select(0.0, share, rank < p.n_used);
    }
    all = workgroup_sum(all, lid);
    used = workgroup_sum(used, lid);
    // The floor is the smallest normal half, as in the reference.
    let whole = all * max(used / all, 6.103515625e-5);
    for (var e = lid; e < p.n_expert; e += WG) {
        if (ranks[e] < p.n_used) {
            ids[row * p.n_used + ranks[e]] = e;
            weights[row * p.n_used + ranks[e]] = exp(value_of(own_key(e)) - top) / whole;
        }
    }
}
