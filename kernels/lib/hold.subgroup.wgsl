// hold.subgroup - a workgroup joins, and keeps what its block reads of the stream, as lib/hold does, four columns a thread at a time:
// neighbours read neighbours, and the sixteen columns of a run are those of four lanes. Needs what lib/columns needs.
//!include lib/held.wgsl
// Four columns.
struct Piece {
    v : vec4<f32>,   // of the stream
    raw : vec4<f32>, // of the branch
    post : vec4<f32>,
    lead : vec4<f32>,
}

// Vec4 i of the row that begins at `at`; past its end the last one again. Without a branch something is read and not used, so
// that no load waits for another.
fn piece(at : u32, i : u32) -> Piece {
    let k = min(i, p.cols / 4u - 1u);
    return Piece(x[at + k], branch[(at + k) * p.has_branch], post_of(k * p.has_branch), lead(k));
}

fn branch_of(c : Piece) -> vec4<f32> {
    return select(vec4<f32>(), c.raw * c.post, vec4<bool>(p.has_branch != 0u));
}

fn piece_sums(c : Piece, i : u32) -> vec4<f32> {
    let raw = select(vec4<f32>(), c.raw, vec4<bool>(p.has_branch != 0u));
    return select(vec4<f32>(), sums_of(c.v, raw, branch_of(c)), vec4<bool>(i < p.cols / 4u));
}

fn most_of(v : vec4<f32>) -> f32 {
    let size = abs(v);
    let most = max(max(size.x, size.y), max(size.z, size.w));
    let two = max(most, subgroupShuffleXor(most, 1u));
    return max(two, subgroupShuffleXor(two, 2u));
}

fn sum_of(v : vec4<f32>) -> f32 {
    let sum = (v.x + v.y) + (v.z + v.w);
    let two = sum + subgroupShuffleXor(sum, 1u);
    return two + subgroupShuffleXor(two, 2u);
}

// Vec4 i, as the products want it.
fn keep_piece(i : u32, v : vec4<f32>, mine : bool) {
    if (CODES) {
        let most = most_of(v);
        let sum = sum_of(v);
        let d = transposed(digits_of(v, inverse_of(most)));
        let at = run_place(i / 4u);
        let j = i & 3u;
        if (mine) {
            held[at][j] = d.high;
            held[at + HELD / 4u][j] = d.middle;
            held[at + HELD / 2u][j] = d.low;
            if (j == 0u) {
                held[at + 3u * HELD / 4u] = scale_and_sum(most, sum);
            }
        }
    } else if (mine) {
        held[place(i)] = bitcast<vec4<u32>>(v);
    }
}

fn finish_piece(c : Piece, i : u32, j : Joining, writes : bool) {
    let mine = i < p.cols / 4u;
    let state = j.factor * (c.v + j.r * branch_of(c));
    if (writes && mine) {
        to[j.at + i] = state;
    }
    var v = state;
    if (normed()) {
        v = j.inverse * state * c.lead;
    }
    keep_piece(i, v, mine);
}

// The whole workgroup takes part. One of the workgroups that share a row writes its next state.
fn hold(tok : u32, id : u32, writes : bool) {
    let at = tok * (p.cols / 4u);
    let a = piece(at, id);
    var b = Piece();
    var c = Piece();
    var d = Piece();
    if (HELD > WG) {
        b = piece(at, id + WG);
    }
    if (HELD > 2u * WG) {
        c = piece(at, id + 2u * WG);
    }
    if (HELD > 3u * WG) {
        d = piece(at, id + 3u * WG);
    }
    var sums = piece_sums(a, id);
    if (HELD > WG) {
        sums += piece_sums(b, id + WG);
    }
    if (HELD > 2u * WG) {
        sums += piece_sums(c, id + 2u * WG);
    }
    if (HELD > 3u * WG) {
        sums += piece_sums(d, id + 3u * WG);
    }
    let j = joining_from(sums, at, id);
    finish_piece(a, id, j, writes);
    if (HELD > WG) {
        finish_piece(b, id + WG, j, writes);
    }
    if (HELD > 2u * WG) {
        finish_piece(c, id + 2u * WG, j, writes);
    }
    if (HELD > 3u * WG) {
        finish_piece(d, id + 3u * WG, j, writes);
    }
    workgroupBarrier();
}
