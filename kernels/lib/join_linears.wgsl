// join_linears - the kernel of that name and join_linears_mixed, without their shapes, add_over() and what becomes of the
// results: a file and its tier choose.
//!include lib/base.wgsl
//!include lib/join_vectors.wgsl
//!include lib/joining.wgsl
//!include lib/hold.wgsl

fn vector_four(i : u32) -> Sixteen {
    return Sixteen(vectors[i], vectors[i + 1u], vectors[i + 2u], vectors[i + 3u]);
}

// f u + g v
fn sum_of(u : Sixteen, f : f32, v : Sixteen, g : f32) -> Sixteen {
    return Sixteen(f * u.a + g * v.a, f * u.b + g * v.b, f * u.c + g * v.c, f * u.d + g * v.d);
}

fn hold_sum(tok : u32, id : u32, writes : bool) {
    let n = p.cols / 4u;
    let i = 4u * id;
    let at = tok * n + i;
    let mine = i < n;
    // All that is read is on its way before anything is waited for.
    var c = Columns();
    var post = Sixteen();
    var one = Sixteen();
    var two = Sixteen();
    var squares = vec2<f32>();
    if (mine) {
        c.v = x_four(at);
        c.w = lead_four(i);
        post = post_four(i);
        one = branch_four(at);
        two = branch_four(p.other_at + at);
        squares = vec2<f32>(square_sum(one), square_sum(two));
        one = times(one, vector_four(p.branch_w_at + i));
        two = times(two, vector_four(p.other_w_at + i));
    }
    let mean = add_some(vec4<f32>(squares, 0.0, 0.0), 2u, id, WG) / f32(p.cols);
    let inverse = inverseSqrt(mean + p.eps);
    workgroupBarrier(); // before the next sum
    let raw = sum_of(one, inverse.x, two, inverse.y);
    c.b = times(raw, post);
    c.sums = (sums_of(c.v.a, raw.a, c.b.a) + sums_of(c.v.b, raw.b, c.b.b)) + (sums_of(c.v.c, raw.c, c.b.c) + sums_of(c.v.d, raw.d, c.b.d));
    let j = joining_from(c.sums, at, id);
    if (mine) {
        let state = next_state(c, j);
        if (writes) {
            put_state(at, state);
        }
        keep(i, leading(c, j, state));
    }
    workgroupBarrier();
}

//!include lib/four_rows.wgsl
override MATRICES : u32 = 3u; // so many there are: no code for more

const NO_UNIT : u32 = 0x7fffffffu; // a lane past the end of every row

struct TeamRows {
    first : u32,     // row of the matrix `which`
    sum : vec4<f32>, // this lane's part
}

fn n_teams() -> vec3<u32> {
    return (vec3<u32>(p.rows, p.rows2, p.rows3) + vec3<u32>(R - 1u)) / vec3<u32>(R);
}

fn three_rows(team : u32, lane : u32) -> TeamRows {
    let ends = n_teams();
    let ones = team < ends.x;
    let twos = !ones && team < ends.x + ends.y;
    let first = R * (team - select(select(ends.x + ends.y, ends.x, twos), 0u, ones));
    // One loop after the other, two of them without a unit: so `which` is a number that the compiler sees, and no
    // load has to choose or to wait for a branch.
    which = 0u;
    var sum = four_rows(four_from(first, p.rows), 0u, select(NO_UNIT, lane, ones));
    if (MATRICES > 1u) {
        which = 1u;
        sum += four_rows(four_from(first, p.rows2), 0u, select(NO_UNIT, lane, twos));
    }
    if (MATRICES > 2u) {
        which = 2u;
        sum += third_rows(four_from(first, p.rows3), 0u, select(lane, NO_UNIT, ones || twos));
    }
    which = select(select(2u, 1u, twos), 0u, ones);
    return TeamRows(first, sum);
}

// Of `which`.
fn of_three(first : u32, second : u32, third : u32) -> u32 {
    return select(select(third, second, which == 1u), first, which == 0u);
}

struct Params {
    cols : u32,
    n_tok : u32, // rows of x and of the results
    has_branch : u32,
    has_scale : u32,
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    other_at : u32, // of two branches, see lib/hold_sum.wgsl
    branch_w_at : u32,
    other_w_at : u32,
    rows : u32,
    scales : u32, // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rows2 : u32,
    scales2 : u32,
    high2 : u32,
    d2 : u32,
    rows3 : u32,
    scales3 : u32,
    high3 : u32,
    d3 : u32,
    eps : f32,
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind branch read array<vec4<f32>>
//!bind vectors read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind w2 read array<vec4<u32>>
//!bind w3 read array<vec4<u32>>
//!bind to update array<vec4<f32>>

override BRANCHES : u32 = 1u; // 1 or 2

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    // R rows a team; the teams of the matrices follow each other. The workgroups of a row of x take them in
    // turn, so that few of them join.
    let ends = n_teams();
    let teams = WG / LANES;
    let groups = groups_a_row(num, p.n_tok);
    let turn = turn_of(flat_group(wid, num), groups);
    let tok = turn.row;
    if (tok >= p.n_tok) {
        return;
    }
    if (BRANCHES == 2u) {
        hold_sum(tok, id, turn.at == 0u);
    } else {
        hold(tok, id, turn.at == 0u);
    }
    let lane = id % LANES;
    for (var i = 0u; i < MOST_TURNS; i++) {
        let block = turn.at + i * groups;
        if (block * teams >= ends.x + ends.y + ends.z) {
            break;
        }
        let team = block * teams + id / LANES;
        let mine = three_rows(team, lane);
        let first = mine.first;
        let sum = add_lanes(mine.sum, id);
        let n_rows = of_three(p.rows, p.rows2, p.rows3);
        for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
            let r = lane + k * LANES;
            if (r >= R) {
                break;
            }
            if (first + r < n_rows) {
                put(tok, first + r, sum[r]);
            }
        }
        workgroupBarrier(); // before the next block's sum
    }
}
