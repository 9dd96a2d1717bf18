// matrix - a block of ROWS x TOKS results of W x by subgroup matrices. Needs a shape, the buffer x of to_halves,
// w_part(row, col) and x_row(tok): the eights of columns col and col + 1 of a row of W as halves, zeros past the last
// column, and which row of x; put_eight(tok, row, a, b): what becomes of the results of rows row .. row + 3 and of
// those 16 further on.
//
// A step takes 32 columns: W and x are staged as halves in workgroup memory, sixteen columns of a row at a time. There
// is a subgroup for each 32 tokens and each part of the rows, 64 or 32 of them; they multiply in pieces of 16 x 16 with
// f32 sums. While a step is computed the next one is on its way. At the end the pieces go through workgroup memory,
// where every thread finds rows of its own. ROWS is 128 or 64, TOKS 256 to 32; WG is
// such that the parts are so large, and >= 2 TOKS.
override ROWS : u32 = 128u;
override TOKS : u32 = 128u;
override WG : u32 = 256u;

const PITCH : u32 = 5u;        // of a row in workgroup memory: 32 halves and a gap, so that banks differ
const PIECE : u32 = 80u;       // 16 rows

struct Halves {
    a : vec4<u32>,
    b : vec4<u32>,
}

// Rows of W, then of x. At the end f32: two pieces a subgroup, token by token; first all first ones.
var<workgroup> stage : array<vec4<u32>, max(5u * (ROWS + TOKS), 4u * WG)>;

fn to_half(a : vec4<f32>, b : vec4<f32>) -> vec4<u32> {
    return vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy),
                     pack2x16float(b.zw));
}

fn to_halves(e : Sixteen) -> Halves {
    return Halves(to_half(e.a, e.b), to_half(e.c, e.d));
}

fn x_part(row : u32, col : u32) -> Halves {
    let eights = (p.cols + 7u) / 8u;
    let at = row * (eights + 1u) + col;
    if (col + 1u < eights) {
        return Halves(bitcast<vec4<u32>>(x[at]), bitcast<vec4<u32>>(x[at + 1u]));
    }
    if (col < eights) {
        return Halves(bitcast<vec4<u32>>(x[at]), vec4<u32>());
    }
    return Halves();
}

// What the results of a row of x are to be multiplied with.
fn x_scale(row : u32) -> f32 {
    let eights = (p.cols + 7u) / 8u;
    return x[row * (eights + 1u) + eights].x;
}

// Rows of W that a subgroup takes.
fn part_rows() -> u32 {
    return ROWS * TOKS / WG;
}

// The pieces that the subgroups have stored: rows row .., tokens tok .. of each subgroup's part.
fn put_pieces(row0 : u32, tok0 : u32, row : u32, tok : u32, id : u32) {
    let by_rows = ROWS / part_rows();
    workgroupBarrier();
    // 64 groups of four rows a piece
    for (var i = id; i < 2u * WG; i += WG) {
        let part = i / 64u;
        put_eight(tok0 + part / by_rows * 32u + tok + i % 64u / 4u,
                  row0 + part % by_rows * part_rows() + row + i % 4u * 4u,
                  bitcast<vec4<f32>>(stage[i]), bitcast<vec4<f32>>(stage[i + 2u * WG]));
    }
    workgroupBarrier();
}

fn block_products(row0 : u32, tok0 : u32, cols : u32, id : u32, subgroup : u32) {
    let by_rows = ROWS / part_rows();
    let part = id % 2u; // as a loader
    let row = id / 2u;
    let next = WG / 2u; // its other row of W, if they are so many
    let here = row * PITCH + 2u * part;
    let there = here + next * PITCH;
    let x_first = ROWS * PITCH;
    let xr = x_row(tok0 + min(row, TOKS - 1u));
    let w_at = subgroup % by_rows * part_rows() * PITCH; // as a worker
    let x_at = x_first + subgroup / by_rows * 32u * PITCH;

    var s00 = subgroup_matrix_result<f32, 16, 16>();
    var s10 = subgroup_matrix_result<f32, 16, 16>();
    var s01 = subgroup_matrix_result<f32, 16, 16>();
    var s11 = subgroup_matrix_result<f32, 16, 16>();
    var s20 = subgroup_matrix_result<f32, 16, 16>(); // from here on only where its rows are 64
    var s30 = subgroup_matrix_result<f32, 16, 16>();
    var s21 = subgroup_matrix_result<f32, 16, 16>();
    var s31 = subgroup_matrix_result<f32, 16, 16>();
    var e = Halves();
    var f = Halves();
    if (row < ROWS) {
        e = w_part(row0 + row, 2u * part);
    }
    if (next < ROWS) {
        f = w_part(row0 + row + next, 2u * part);
    }
    var v = x_part(xr, 2u * part);
    for (var first = 0u; first < cols; first += 4u) {
        if (row < ROWS) {
            stage[here] = e.a;
            stage[here + 1u] = e.b;
        }
        if (next < ROWS) {
            stage[there] = f.a;
            stage[there + 1u] = f.b;
        }
        if (row < TOKS) {
            stage[x_first + here] = v.a;
            stage[x_first + here + 1u] = v.b;
        }
        workgroupBarrier();
        let col = first + 4u + 2u * part;
        if (row < ROWS) {
            e = w_part(row0 + row, col);
        }
        if (next < ROWS) {
            f = w_part(row0 + row + next, col);
        }
        if (row < TOKS) {
            v = x_part(xr, col);
        }
        for (var k = 0u; k < 4u; k += 2u) {
            let wk = w_at + k;
            let xk = x_at + k;
            let b0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(&stage, xk, PITCH);
            let b1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(&stage, xk + PIECE, PITCH);
            let a0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&stage, wk, PITCH);
            let a1 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&stage, wk + PIECE, PITCH);
            s00 = subgroupMatrixMultiplyAccumulate(a0, b0, s00);
            s10 = subgroupMatrixMultiplyAccumulate(a1, b0, s10);
            s01 = subgroupMatrixMultiplyAccumulate(a0, b1, s01);
            s11 = subgroupMatrixMultiplyAccumulate(a1, b1, s11);
            if (part_rows() == 64u) {
                let a2 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&stage, wk + 2u * PIECE, PITCH);
                let a3 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&stage, wk + 3u * PIECE, PITCH);
                s20 = subgroupMatrixMultiplyAccumulate(a2, b0, s20);
                s30 = subgroupMatrixMultiplyAccumulate(a3, b0, s30);
                s21 = subgroupMatrixMultiplyAccumulate(a2, b1, s21);
                s31 = subgroupMatrixMultiplyAccumulate(a3, b1, s31);
            }
        }
        workgroupBarrier();
    }
    let mine = 64u * subgroup;
    let second = mine + 2u * WG;
    subgroupMatrixStore<col_major>(&stage, mine, s00, 4u);
    subgroupMatrixStore<col_major>(&stage, second, s10, 4u);
    put_pieces(row0, tok0, 0u, 0u, id);
    subgroupMatrixStore<col_major>(&stage, mine, s01, 4u);
    subgroupMatrixStore<col_major>(&stage, second, s11, 4u);
    put_pieces(row0, tok0, 0u, 16u, id);
    if (part_rows() == 64u) {
        subgroupMatrixStore<col_major>(&stage, mine, s20, 4u);
        subgroupMatrixStore<col_major>(&stage, second, s30, 4u);
        put_pieces(row0, tok0, 32u, 0u, id);
        subgroupMatrixStore<col_major>(&stage, mine, s21, 4u);
        subgroupMatrixStore<col_major>(&stage, second, s31, 4u);
        put_pieces(row0, tok0, 32u, 16u, id);
    }
}
