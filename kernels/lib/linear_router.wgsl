// linear_router - the kernel of that name without its shape and add_some(): a tier chooses.
//!include lib/grid.wgsl
//!include lib/four.wgsl
//!include lib/four_from.wgsl
//!include lib/four_rows.wgsl
//!include lib/put_run.wgsl

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

// What columns 4i .. 4i + 3 of a row of the state give to the sum of squares and to an expert's score, nothing past its end.
fn sums_at(row : u32, expert : u32, i : u32) -> vec2<f32> {
    let fours = p.n_embd / 4u;
    let k = min(i, fours - 1u);
    let v = state[row * fours + k];
    let sums = vec2<f32>(dot(v, v), dot(m[expert * fours + k], v * vectors[p.scale_at + k]));
    return select(vec2<f32>(), sums, vec2<bool>(i < fours));
}

// Sixteen columns from vec4 i of a row on, times norm.
fn normed_four(row : u32, i : u32) -> Four {
    let at = row * (p.n_embd / 4u) + i;
    let k = p.norm_at + i;
    return times(Four(state[at], state[at + 1u], state[at + 2u], state[at + 3u]),
                 Four(vectors[k], vectors[k + 1u], vectors[k + 2u], vectors[k + 3u]));
}

// A workgroup makes the score of an expert, and some runs of n. Four loads of each are on their way at a time.
fn score(row : u32, expert : u32, id : u32) {
    let run = expert + p.n_expert * id;
    let mine = run < p.n_embd / 16u;
    var v = Four();
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
        v = mixed(v, Four(), 0.0, inverse);
        let at = row * (p.n_embd / 4u);
        n[at + 4u * run] = v.a;
        n[at + 4u * run + 1u] = v.b;
        n[at + 4u * run + 2u] = v.c;
        n[at + 4u * run + 3u] = v.d;
        put_run(at, p.n_embd, run, settle(v.a, v.b, v.c, v.d));
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
    let teams = WG / LANES;
    let turn = turn_of(group - scored, (p.rows + R * teams - 1u) / (R * teams));
    if (turn.row >= p.n_tok) {
        return;
    }
    let first = R * (turn.at * teams + id / LANES);
    let lane = id % LANES;
    let sum = add_lanes(four_rows(four_from(first, p.rows), turn.row * (p.cols / 4u), lane), id);
    for (var r = lane; r < R; r += LANES) {
        if (first + r < p.rows) {
            y[turn.row * p.rows + first + r] = sum[r];
        }
    }
}
