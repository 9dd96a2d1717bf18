// matrix - a block of ROWS x TOKS results of W x by subgroup matrices, or (w_major col_major) of W'
// x. Needs a format of quant/, the buffer x of to_halves, w_eight(row, col) and x_row(tok): which
// eight of W that is, and which row of x; put_eight(tok, row, a, b): what becomes of the results of
// rows row .. row + 3 and of those 16 further on; with col_major depth(): numbers of a row of x.
//
// A step takes 32 columns, of W' that is 32 rows of W: W and x are staged as halves in workgroup
// memory, a thread sixteen columns of one row or two of each. A subgroup has a part of the results,
// 64 x 64, 64 rows x 32 tokens or 32 x 32, and multiplies in pieces of 16 x 16 with f32 sums. While
// a step is multiplied the bits of the next are on their way; then they become halves in the other
// of two stages, so there is one barrier a step (BUFFERS 1: one stage, two barriers). At the end
// the pieces go through workgroup memory, where every thread finds rows of its own.
//
// Loads of pieces have constant offsets into arrays of 32 rows: then the compiler knows that they
// are inside. Otherwise it chooses offset and stride of each anew.
//
// ROWS and TOKS are 32 or more and no more than WG; a part is ROWS * TOKS / (WG / 32) results.
override ROWS : u32 = 128u;
override TOKS : u32 = 128u;
override WG : u32 = 256u;
override BUFFERS : u32 = 2u;

const PITCH : u32 = 5u; // of a row in workgroup memory: 32 halves and a gap, so that banks differ

// Of the pieces of W in a unit: from the first to that 16 results further on, to that 16 numbers
// deeper, to both.
//!if w_major == row_major
const W_NEXT : u32 = 80u;
const W_DEEP : u32 = 2u;
//!else
const W_NEXT : u32 = 2u;
const W_DEEP : u32 = 80u;
//!end
const W_BOTH : u32 = 82u;

// Of each stage the rows of W, then of x, 32 in a unit; the second 16 begin at 80. At the end f32:
// a unit a subgroup has two pieces, token by token.
var<workgroup> stage : array<array<vec4<u32>, 160>, max(BUFFERS * (ROWS + TOKS) / 32u, WG / 32u)>;

// Rows of halves are whole steps long, and end with the number that their results are to be
// multiplied with.
fn x_pitch() -> u32 {
//!if w_major == row_major
    return (p.cols + 31u) / 32u * 4u + 1u;
//!else
    return (depth() + 31u) / 32u * 4u + 1u;
//!end
}

fn x_part(row : u32, col : u32) -> Halves {
    let at = row * x_pitch() + col;
    return Halves(bitcast<vec4<u32>>(x[at]), bitcast<vec4<u32>>(x[at + 1u]));
}

fn x_scale(row : u32) -> f32 {
    return x[row * x_pitch() + x_pitch() - 1u].x;
}

fn part_results() -> u32 {
    return ROWS * TOKS / (WG / 32u);
}

// Of W, that a subgroup takes.
fn part_rows() -> u32 {
    return select(32u, 64u, part_results() > 1024u);
}

fn part_toks() -> u32 {
    return select(32u, 64u, part_results() > 2048u);
}

// A thread that stages rows of W from row0 on, and of x.
struct Loader {
    row0 : u32,
    row : u32,
    part : u32, // which sixteen columns of a step
    x : vec2<u32>, // which rows of it
}

// The bits of a step.
struct Bits {
    w0 : Raw,
    w1 : Raw,
    x0 : Halves,
    x1 : Halves,
}

// How far it is to a thread's other row of each, if they are so many.
fn next_row() -> u32 {
    return WG / 2u;
}

// Which eight of W a thread brings for its row, or the other one, of a step; and to which row of
// the stage its sixteen go, and which half of that.
//!if w_major == row_major
fn w_from(l : Loader, first : u32, row : u32) -> u32 {
    return w_eight(l.row0 + row, first + 2u * l.part);
}

fn w_to(l : Loader, row : u32) -> vec2<u32> {
    return vec2<u32>(row, l.part);
}
//!else
// Sixteens of 32 rows of W, row by row.
fn w_from(l : Loader, first : u32, row : u32) -> u32 {
    let i = 2u * row + l.part;
    return w_eight(8u * first + i / (ROWS / 16u), l.row0 / 8u + i % (ROWS / 16u) * 2u);
}

fn w_to(l : Loader, row : u32) -> vec2<u32> {
    let i = 2u * row + l.part;
    let sixteen = i % (ROWS / 16u);
    return vec2<u32>(sixteen / 2u * 32u + i / (ROWS / 16u), sixteen % 2u);
}
//!end

fn bits_of(l : Loader, first : u32) -> Bits {
    let col = first + 2u * l.part;
    var out = Bits();
    if (next_row() <= ROWS || l.row < ROWS) {
        out.w0 = raw_at(w_from(l, first, l.row));
    }
    if (next_row() < ROWS) {
        out.w1 = raw_at(w_from(l, first, l.row + next_row()));
    }
    if (next_row() <= TOKS || l.row < TOKS) {
        out.x0 = x_part(l.x.x, col);
    }
    if (next_row() < TOKS) {
        out.x1 = x_part(l.x.y, col);
    }
    return out;
}

// Sixteen columns of a row of a stage.
fn put_row(now : u32, row : u32, part : u32, h : Halves) {
    let at = row % 32u * PITCH + 2u * part;
    stage[now + row / 32u][at] = h.a;
    stage[now + row / 32u][at + 1u] = h.b;
}

fn put_bits(l : Loader, first : u32, b : Bits, now : u32) {
    if (next_row() <= ROWS || l.row < ROWS) {
        let to = w_to(l, l.row);
        put_row(now, to.x, to.y, halves_of(b.w0, w_from(l, first, l.row)));
    }
    if (next_row() < ROWS) {
        let to = w_to(l, l.row + next_row());
        put_row(now, to.x, to.y, halves_of(b.w1, w_from(l, first, l.row + next_row())));
    }
    if (next_row() <= TOKS || l.row < TOKS) {
        put_row(now, ROWS + l.row, l.part, b.x0);
    }
    if (next_row() < TOKS) {
        put_row(now, ROWS + l.row + next_row(), l.part, b.x1);
    }
}

// The pieces that the subgroups have stored: rows row .., tokens tok .. of each subgroup's part.
fn put_pieces(row0 : u32, tok0 : u32, row : u32, tok : u32, id : u32) {
    let by_rows = ROWS / part_rows();
    workgroupBarrier();
    // 64 groups of four rows a piece
    for (var i = id; i < 2u * WG; i += WG) {
        let part = i / 64u;
        put_eight(tok0 + part / by_rows * part_toks() + tok + i % 64u / 4u,
                  row0 + part % by_rows * part_rows() + row + i % 4u * 4u,
                  bitcast<vec4<f32>>(stage[part][i % 64u]),
                  bitcast<vec4<f32>>(stage[part][64u + i % 64u]));
    }
    workgroupBarrier();
}

// From the eight of columns `first` on, a multiple of 4, up to `last`.
fn block_products(row0 : u32, tok0 : u32, first : u32, last : u32, id : u32, subgroup : u32) {
    let by_rows = ROWS / part_rows();
    let row = id / 2u;
    let loader = Loader(row0, row, id % 2u, vec2<u32>(x_row(tok0 + min(row, TOKS - 1u)),
                                                      x_row(tok0 +
                                                            min(row + next_row(), TOKS - 1u))));
    let w_unit = subgroup % by_rows * (part_rows() / 32u); // as a worker
    let x_unit = ROWS / 32u + subgroup / by_rows * (part_toks() / 32u);
    let other = (BUFFERS - 1u) * (ROWS + TOKS) / 32u;

    var s00 = subgroup_matrix_result<f32, 16, 16>();
    var s10 = subgroup_matrix_result<f32, 16, 16>();
    var s01 = subgroup_matrix_result<f32, 16, 16>();
    var s11 = subgroup_matrix_result<f32, 16, 16>();
    var s20 = subgroup_matrix_result<f32, 16, 16>(); // from here on only where its rows are 64
    var s30 = subgroup_matrix_result<f32, 16, 16>();
    var s21 = subgroup_matrix_result<f32, 16, 16>();
    var s31 = subgroup_matrix_result<f32, 16, 16>();
    var s02 = subgroup_matrix_result<f32, 16, 16>(); // and from here on where its tokens are too
    var s12 = subgroup_matrix_result<f32, 16, 16>();
    var s22 = subgroup_matrix_result<f32, 16, 16>();
    var s32 = subgroup_matrix_result<f32, 16, 16>();
    var s03 = subgroup_matrix_result<f32, 16, 16>();
    var s13 = subgroup_matrix_result<f32, 16, 16>();
    var s23 = subgroup_matrix_result<f32, 16, 16>();
    var s33 = subgroup_matrix_result<f32, 16, 16>();
    var now = 0u;
    put_bits(loader, first, bits_of(loader, first), now);
    workgroupBarrier();
    for (var col = first; col < last; col += 4u) {
        let next = bits_of(loader, col + 4u); // past the end: bits that are not multiplied
        let w0 = now + w_unit;
        let w1 = w0 + 1u;
        let x0 = now + x_unit;
        let x1 = x0 + 1u;
        {
            let b0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(
                &stage[x0], 0u, PITCH);
            let b1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(
                &stage[x0], 80u, PITCH);
            let a0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, $w_major>(
                &stage[w0], 0u, PITCH);
            let a1 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, $w_major>(
                &stage[w0], W_NEXT, PITCH);
            s00 = subgroupMatrixMultiplyAccumulate(a0, b0, s00);
            s10 = subgroupMatrixMultiplyAccumulate(a1, b0, s10);
            s01 = subgroupMatrixMultiplyAccumulate(a0, b1, s01);
            s11 = subgroupMatrixMultiplyAccumulate(a1, b1, s11);
            if (part_rows() == 64u) {
                let a2 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, $w_major>(
                    &stage[w1], 0u, PITCH);
                let a3 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, $w_major>(
                    &stage[w1], W_NEXT, PITCH);
                s20 = subgroupMatrixMultiplyAccumulate(a2, b0, s20);
                s30 = subgroupMatrixMultiplyAccumulate(a3, b0, s30);
                s21 = subgroupMatrixMultiplyAccumulate(a2, b1, s21);
                s31 = subgroupMatrixMultiplyAccumulate(a3, b1, s31);
                if (part_toks() == 64u) {
                    let b2 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(
                        &stage[x1], 0u, PITCH);
                    let b3 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(
                        &stage[x1], 80u, PITCH);
                    s02 = subgroupMatrixMultiplyAccumulate(a0, b2, s02);
                    s12 = subgroupMatrixMultiplyAccumulate(a1, b2, s12);
                    s22 = subgroupMatrixMultiplyAccumulate(a2, b2, s22);
                    s32 = subgroupMatrixMultiplyAccumulate(a3, b2, s32);
                    s03 = subgroupMatrixMultiplyAccumulate(a0, b3, s03);
                    s13 = subgroupMatrixMultiplyAccumulate(a1, b3, s13);
                    s23 = subgroupMatrixMultiplyAccumulate(a2, b3, s23);
                    s33 = subgroupMatrixMultiplyAccumulate(a3, b3, s33);
                }
            }
        }
        {
            let b0 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(
                &stage[x0], 2u, PITCH);
            let b1 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(
                &stage[x0], 82u, PITCH);
            let a0 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, $w_major>(
                &stage[w0], W_DEEP, PITCH);
            let a1 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, $w_major>(
                &stage[w0], W_BOTH, PITCH);
            s00 = subgroupMatrixMultiplyAccumulate(a0, b0, s00);
            s10 = subgroupMatrixMultiplyAccumulate(a1, b0, s10);
            s01 = subgroupMatrixMultiplyAccumulate(a0, b1, s01);
            s11 = subgroupMatrixMultiplyAccumulate(a1, b1, s11);
            if (part_rows() == 64u) {
                let a2 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, $w_major>(
                    &stage[w1], W_DEEP, PITCH);
                let a3 = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, $w_major>(
                    &stage[w1], W_BOTH, PITCH);
                s20 = subgroupMatrixMultiplyAccumulate(a2, b0, s20);
                s30 = subgroupMatrixMultiplyAccumulate(a3, b0, s30);
                s21 = subgroupMatrixMultiplyAccumulate(a2, b1, s21);
                s31 = subgroupMatrixMultiplyAccumulate(a3, b1, s31);
                if (part_toks() == 64u) {
                    let b2 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(
                        &stage[x1], 2u, PITCH);
                    let b3 = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(
                        &stage[x1], 82u, PITCH);
                    s02 = subgroupMatrixMultiplyAccumulate(a0, b2, s02);
                    s12 = subgroupMatrixMultiplyAccumulate(a1, b2, s12);
                    s22 = subgroupMatrixMultiplyAccumulate(a2, b2, s22);
                    s32 = subgroupMatrixMultiplyAccumulate(a3, b2, s32);
                    s03 = subgroupMatrixMultiplyAccumulate(a0, b3, s03);
                    s13 = subgroupMatrixMultiplyAccumulate(a1, b3, s13);
                    s23 = subgroupMatrixMultiplyAccumulate(a2, b3, s23);
                    s33 = subgroupMatrixMultiplyAccumulate(a3, b3, s33);
                }
            }
        }
        if (BUFFERS == 1u) {
            workgroupBarrier();
        }
        now = other - now;
        put_bits(loader, col + 4u, next, now);
        workgroupBarrier();
    }
    subgroupMatrixStore<col_major>(&stage[subgroup], 0u, s00, 4u);
    subgroupMatrixStore<col_major>(&stage[subgroup], 64u, s10, 4u);
    put_pieces(row0, tok0, 0u, 0u, id);
    subgroupMatrixStore<col_major>(&stage[subgroup], 0u, s01, 4u);
    subgroupMatrixStore<col_major>(&stage[subgroup], 64u, s11, 4u);
    put_pieces(row0, tok0, 0u, 16u, id);
    if (part_rows() == 64u) {
        subgroupMatrixStore<col_major>(&stage[subgroup], 0u, s20, 4u);
        subgroupMatrixStore<col_major>(&stage[subgroup], 64u, s30, 4u);
        put_pieces(row0, tok0, 32u, 0u, id);
        subgroupMatrixStore<col_major>(&stage[subgroup], 0u, s21, 4u);
        subgroupMatrixStore<col_major>(&stage[subgroup], 64u, s31, 4u);
        put_pieces(row0, tok0, 32u, 16u, id);
    }
    if (part_toks() == 64u) {
        subgroupMatrixStore<col_major>(&stage[subgroup], 0u, s02, 4u);
        subgroupMatrixStore<col_major>(&stage[subgroup], 64u, s12, 4u);
        put_pieces(row0, tok0, 0u, 32u, id);
        subgroupMatrixStore<col_major>(&stage[subgroup], 0u, s22, 4u);
        subgroupMatrixStore<col_major>(&stage[subgroup], 64u, s32, 4u);
        put_pieces(row0, tok0, 32u, 32u, id);
        subgroupMatrixStore<col_major>(&stage[subgroup], 0u, s03, 4u);
        subgroupMatrixStore<col_major>(&stage[subgroup], 64u, s13, 4u);
        put_pieces(row0, tok0, 0u, 48u, id);
        subgroupMatrixStore<col_major>(&stage[subgroup], 0u, s23, 4u);
        subgroupMatrixStore<col_major>(&stage[subgroup], 64u, s33, 4u);
        put_pieces(row0, tok0, 32u, 48u, id);
    }
}
