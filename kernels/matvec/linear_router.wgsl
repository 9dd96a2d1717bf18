// linear_router - y[t] = W x[t]; and of v = state[t], with norm(v) = v / sqrt(mean(v^2) + eps):
//   scores[t] = M (norm(v) / sqrt(n_embd) * scale), n[t] = norm(v) * norm_w
//   (decode: one or a few rows t)
//
//   x        read   n_tok x cols, ready
//   w        read   rows x cols
//   state    read   n_tok x n_embd f32
//   m        read   n_expert x n_embd f32
//   vectors  read   scale and norm_w at their places
//   y        write  n_tok x rows f32
//   scores   write  n_tok x n_expert f32
//   n        write  n_tok x n_embd f32
//   s        write  n, ready
//   grid   n_tok * n_expert workgroups; then each t in turn: a workgroup per R WG / LANES rows of W
//   bytes  W and M once a row t; the others come from the cache
//   needs  cols % 16 == 0; n_embd % 16 == 0; n_embd <= 16 n_expert WG
//
// linear_no_lora and router_scores, neither of which reads the other's result, in one dispatch: a
// dispatch that waits costs more than either of them.
//
// Reference: rms_norm(), linear() and times() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums
// here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product own
//!axis matrices 1
//!axis input memory
//!without format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl

struct Params {
    cols : u32,
    rows : u32,
    n_tok : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    n_embd : u32,
    n_expert : u32,
    scale_at : u32, // in vectors, in vec4s
    norm_at : u32,
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind state read array<vec4<f32>>
//!bind m read array<vec4<f32>>
//!bind vectors read array<vec4<f32>>
//!bind y update array<f32>
//!bind scores update array<f32>
//!bind n update array<vec4<f32>>
//!bind s update array<vec4<u32>>

// What columns 4i .. 4i + 3 of a row of the state give to the sum of squares and to an expert's
// score, nothing past its end.
fn sums_at(row : u32, expert : u32, i : u32) -> vec2<f32> {
    let fours = p.n_embd / 4u;
    let k = min(i, fours - 1u);
    let v = state[row * fours + k];
    let sums = vec2<f32>(dot(v, v), dot(m[expert * fours + k], v * vectors[p.scale_at + k]));
    return select(vec2<f32>(), sums, vec2<bool>(i < fours));
}

// Sixteen columns from vec4 i of a row on, times norm.
fn normed_four(row : u32, i : u32) -> Sixteen {
    let at = row * (p.n_embd / 4u) + i;
    let k = p.norm_at + i;
    return times(Sixteen(state[at], state[at + 1u], state[at + 2u], state[at + 3u]),
                 Sixteen(vectors[k], vectors[k + 1u], vectors[k + 2u], vectors[k + 3u]));
}

// A workgroup makes the score of an expert, and some runs of n. Four loads of each are on their way
// at a time.
fn score(row : u32, expert : u32, id : u32) {
    let run = expert + p.n_expert * id;
    let mine = run < p.n_embd / 16u;
    var v = Sixteen();
    if (mine) {
        v = normed_four(row, 4u * run);
    }
    var sums = vec2<f32>();
    for (var turn = 0u; turn < MOST_TURNS; turn++) {
        let i = id + turn * 4u * WG;
        if (i >= p.n_embd / 4u) {
            break;
        }
        sums += (sums_at(row, expert, i) + sums_at(row, expert, i + WG)) +
                (sums_at(row, expert, i + 2u * WG) + sums_at(row, expert, i + 3u * WG));
    }
    let all = add_some(vec4<f32>(sums, 0.0, 0.0), 2u, id, WG);
    let width = f32(p.n_embd);
    let inverse = inverseSqrt(all.x / width + p.eps);
    if (id == 0u) {
        scores[row * p.n_expert + expert] = all.y * inverse * inverseSqrt(width);
    }
    if (mine) {
        v = mixed(v, Sixteen(), 0.0, inverse);
        let at = row * (p.n_embd / 4u);
        n[at + 4u * run] = v.a;
        n[at + 4u * run + 1u] = v.b;
        n[at + 4u * run + 2u] = v.c;
        n[at + 4u * run + 3u] = v.d;
        put_run(at, p.n_embd, run, make_ready(v.a, v.b, v.c, v.d));
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let group = flat_group(wid, num);
    let scored = p.n_tok * p.n_expert;
    if (group < scored) {
        let turn = turn_of(group, p.n_expert);
        score(turn.row, turn.at, id);
        return;
    }
    let row_groups = WG / LANES;
    let turn = turn_of(group - scored, (p.rows + R * row_groups - 1u) / (R * row_groups));
    if (turn.row >= p.n_tok) {
        return;
    }
    let first = R * (turn.at * row_groups + id / LANES);
    let lane = id % LANES;
    let sum = add_lanes(four_rows(four_from(first, p.rows), turn.row * (p.cols / 4u), lane), id);
    for (var r = lane; r < R; r += LANES) {
        if (first + r < p.rows) {
            y[turn.row * p.rows + first + r] = sum[r];
        }
    }
}
