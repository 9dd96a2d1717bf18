// linears - up to three matrices times one row, as queries, keys and values: the kernels linears*
// (input memory) and norm_linears* (input shared_row), each as a whole.
//
// axis adapter: none or given, for those that have one
// axis third    alike, or q6_k: the third matrix is Q6_K whatever the others are

//!include lib/matvec.wgsl
//!include lib/lora.wgsl

//!if third == q6_k
//!include quant/q6_k.wgsl as third

fn third_rows(rows : vec4<u32>, x_base : u32, lane : u32) -> vec4<f32> {
    return four_rows_third(rows, x_base, lane);
}
//!else
fn third_rows(rows : vec4<u32>, x_base : u32, lane : u32) -> vec4<f32> {
    return four_rows(rows, x_base, lane);
}
//!end

override MATRICES : u32 = 3u; // so many there are: no code for more

// Row groups of each matrix.
fn n_row_groups() -> vec3<u32> {
    return (vec3<u32>(p.w[0].rows, p.w[1].rows, p.w[2].rows) + vec3<u32>(R - 1u)) / vec3<u32>(R);
}

const NO_UNIT : u32 = 0x7fffffffu; // a lane past the end of every row

// The products of a row group's R rows with the row of x from x_base on. The row groups of the
// matrices follow each other.
struct GroupRows {
    first : u32,     // row of the matrix `which`
    sum : vec4<f32>, // this lane's part
}

fn three_rows(row_group : u32, x_base : u32, lane : u32) -> GroupRows {
    let ends = n_row_groups();
    let ones = row_group < ends.x;
    let twos = !ones && row_group < ends.x + ends.y;
    let first = R * (row_group - select(select(ends.x + ends.y, ends.x, twos), 0u, ones));
    // One loop after the other, two of them without a unit: so `which` is a number that the
    // compiler sees, and no load has to choose or to wait for a branch.
    which = 0u;
    var sum = four_rows(four_from(first, p.w[0].rows), x_base, select(NO_UNIT, lane, ones));
    if (MATRICES > 1u) {
        which = 1u;
        sum += four_rows(four_from(first, p.w[1].rows), x_base, select(NO_UNIT, lane, twos));
    }
    if (MATRICES > 2u) {
        which = 2u;
        sum += third_rows(four_from(first, p.w[2].rows), x_base,
                          select(lane, NO_UNIT, ones || twos));
    }
    which = select(select(2u, 1u, twos), 0u, ones);
    return GroupRows(first, sum);
}

fn put(tok : u32, row : u32, v : f32) {
    if (which == 0u) {
        y[tok * p.w[0].rows + row] = v;
    } else if (which == 1u) {
        y2[tok * p.w[1].rows + row] = v;
    } else {
        y3[tok * p.w[2].rows + row] = v;
    }
}

// The sums of R rows from `first` on of the matrix `which`.
fn put_rows(tok : u32, first : u32, sum : vec4<f32>, lane : u32) {
    let n_rows = of_which(p.w[0].rows, p.w[1].rows, p.w[2].rows);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r >= R) {
            break;
        }
        if (first + r < n_rows) {
            put(tok, first + r, sum[r]);
        }
    }
}

//!if input == memory
struct Params {
    w : array<Matrix, 3>,
    lora : array<Adapter, 3>, // z lies in x
    cols : u32,
    n_tok : u32, // rows of x and of the results
}

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind w read array<vec4<u32>>
//!bind w2 read array<vec4<u32>>
//!bind w3 read array<vec4<u32>>
//!bind y update array<f32>
//!bind y2 update array<f32>
//!bind y3 update array<f32>

//!if adapter == given
//!bind b read array<f32>
//!bind b2 read array<f32>
//!bind b3 read array<f32>

fn z_of(at : u32) -> f32 {
    return x[at >> 2u][at & 3u];
}

// This lane's part for the rows of a matrix from `first` on.
fn adapted(matrix : u32, first : u32, tok : u32, lane : u32) -> vec4<f32> {
    var sum = vec4<f32>();
    if (matrix == 0u) {
        let lora = p.lora[0];
        let rows = four_from(first, lora.b_rows);
        for (var k = lane; k < lora.rank; k += LANES) {
            let at = rows + k * lora.b_rows;
            sum += z_of(lora.z_at + tok * lora.rank + k) * b[lora.b_scales + k] *
                vec4<f32>(b[at.x], b[at.y], b[at.z], b[at.w]);
        }
    } else if (matrix == 1u) {
        let lora = p.lora[1];
        let rows = four_from(first, lora.b_rows);
        for (var k = lane; k < lora.rank; k += LANES) {
            let at = rows + k * lora.b_rows;
            sum += z_of(lora.z_at + tok * lora.rank + k) * b2[lora.b_scales + k] *
                vec4<f32>(b2[at.x], b2[at.y], b2[at.z], b2[at.w]);
        }
    } else {
        let lora = p.lora[2];
        let rows = four_from(first, lora.b_rows);
        for (var k = lane; k < lora.rank; k += LANES) {
            let at = rows + k * lora.b_rows;
            sum += z_of(lora.z_at + tok * lora.rank + k) * b3[lora.b_scales + k] *
                vec4<f32>(b3[at.x], b3[at.y], b3[at.z], b3[at.w]);
        }
    }
    return sum;
}
//!else
fn adapted(matrix : u32, first : u32, tok : u32, lane : u32) -> vec4<f32> {
    return vec4<f32>();
}
//!end

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    // The row groups of the matrices follow each other.
    let ends = n_row_groups();
    let row_groups = WG / LANES;
    let per_tok = (ends.x + ends.y + ends.z + row_groups - 1u) / row_groups;
    let turn = turn_of(flat_group(wid, num), per_tok);
    let tok = turn.row;
    if (tok >= p.n_tok) {
        return;
    }
    let row_group = swizzle_group(turn.at, per_tok) * row_groups + id / LANES;
    let lane = id % LANES;
    let mine = three_rows(row_group, tok * (p.cols / 4u), lane);
    let all = mine.sum + adapted(which, mine.first, tok, lane);
    put_rows(tok, mine.first, add_lanes(all, id), lane);
}
//!else
//!include lib/residual.wgsl

struct Params {
    w : array<Matrix, 3>,
    cols : u32,
    n_tok : u32, // rows of x and of the results
    has_branch : u32,
    has_scale : u32,
    post_at : u32, // in vectors, in vec4s
    scale_at : u32,
    next_at : u32,
    other_at : u32, // of two branches, see share_row_of_two()
    branch_w_at : u32,
    other_w_at : u32,
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
//!bind y update array<f32>
//!bind y2 update array<f32>
//!bind y3 update array<f32>

override BRANCHES : u32 = 1u; // 1 or 2

fn normed() -> bool {
    return true;
}

fn vector_four(i : u32) -> Sixteen {
    return Sixteen(vectors[i], vectors[i + 1u], vectors[i + 2u], vectors[i + 3u]);
}

// f u + g v
fn sum_of(u : Sixteen, f : f32, v : Sixteen, g : f32) -> Sixteen {
    return Sixteen(f * u.a + g * v.a, f * u.b + g * v.b, f * u.c + g * v.c, f * u.d + g * v.d);
}

// As share_row(), where the branch is the sum of two, norm(branch) branch_w + norm(other) other_w.
// Both lie in one buffer.
fn share_row_of_two(tok : u32, id : u32, writes : bool) {
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
        c.w = next_four(i);
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
    c.sums =
        (sums_of(c.v.a, raw.a, c.b.a) + sums_of(c.v.b, raw.b, c.b.b)) +
        (sums_of(c.v.c, raw.c, c.b.c) + sums_of(c.v.d, raw.d, c.b.d));
    let j = residual_from(c.sums, at, id);
    if (mine) {
        let state = next_state(c, j);
        if (writes) {
            put_state(at, state);
        }
        keep(i, block_input(c, j, state));
    }
    workgroupBarrier();
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    // R rows a row group; the row groups of the matrices follow each other. Each workgroup of a row
    // of x takes several blocks of them, so that few workgroups compute the residual.
    let ends = n_row_groups();
    let row_groups = WG / LANES;
    let groups = groups_a_row(num, p.n_tok);
    let turn = turn_of(flat_group(wid, num), groups);
    let tok = turn.row;
    if (tok >= p.n_tok) {
        return;
    }
    if (BRANCHES == 2u) {
        share_row_of_two(tok, id, turn.at == 0u);
    } else {
        share_row(tok, id, turn.at == 0u);
    }
    let lane = id % LANES;
    for (var i = 0u; i < MOST_TURNS; i++) {
        let block = turn.at + i * groups;
        if (block * row_groups >= ends.x + ends.y + ends.z) {
            break;
        }
        let row_group = block * row_groups + id / LANES;
        let mine = three_rows(row_group, 0u, lane);
        put_rows(tok, mine.first, add_lanes(mine.sum, id), lane);
        workgroupBarrier(); // before the next block's sum
    }
}
//!end
