// router - q = softmax(scores); ids: the n_used largest, of equals the lower index, best first;
//   weights: their q, made to sum 1     (each row)
//
//   scores   read   rows x n_expert f32      grid   one workgroup a row
//   ids      write  rows x n_used i32        bytes  scores once, results once
//   weights  write  rows x n_used f32        needs  n_used <= n_expert <= 1024
//
// Every expert counts those better than itself: its rank, without any order of threads.
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

var<workgroup> keys : array<u32, 1024>;
var<workgroup> ranks : array<u32, 1024>; // an expert's own thread writes and reads it

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let row = flat_group(wid, num);
    if (row >= p.rows) {
        return;
    }
    var mine = vec2<u32>(0u, lid);
    for (var e = lid; e < p.n_expert; e += WG) {
        let key = key_of(scores[row * p.n_expert + e]);
        keys[e] = key;
        if (key > mine.x) {
            mine = vec2<u32>(key, e);
        }
    }
    let top = value_of(workgroup_best(mine, lid).x); // its barriers also publish the keys

    var all = 0.0;
    var used = 0.0;
    for (var e = lid; e < p.n_expert; e += WG) {
        let key = keys[e];
        var rank = 0u;
        for (var j = 0u; j < p.n_expert; j++) {
            rank += select(0u, 1u, keys[j] > key || (keys[j] == key && j < e));
        }
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
            weights[row * p.n_used + ranks[e]] = exp(value_of(keys[e]) - top) / whole;
        }
    }
}
