// tile_columns - a block of COLS x TOKS results of W' x: sums over the rows of W, for many rows t.
// Needs lib/matvec; w_part(row, col): eight columns of a row of W, number `col` of the eights; and
// x_part(tok, row): of row t what meets the rows row .. row + 7 of W. Past the last row both are
// zeros.
//
// A step takes LOADS * TOKS / 8 rows of W: each thread decodes LOADS eights of columns and brings
// as many of x to workgroup memory, where both lie row by row of W. A thread has 8 x 8 results:
// columns 4r .. 4r + 3 and the same COLS / 2 further on, rows t alike, so a row of W is four loads
// for 64 multiply-adds. With LOADS 1 the next step is on its way while one is computed. COLS =
// TOKS, 64 or 128; WG = COLS * TOKS / 64; LOADS * TOKS <= 256, and 1 where they are 128.
override COLS : u32 = 64u;
override TOKS : u32 = 64u;
override WG : u32 = 64u;
override LOADS : u32 = 4u;

var<workgroup> right : array<vec4<f32>, 512>; // rows of W: COLS columns
var<workgroup> left : array<vec4<f32>, 512>;  // the same rows: TOKS factors

// Results of a thread: rows t are the columns.
struct Block {
    low : mat4x4<f32>,   // columns 4r ..
    high : mat4x4<f32>,  // columns 4r + COLS / 2 ..
    low2 : mat4x4<f32>,  // rows t TOKS / 2 further on
    high2 : mat4x4<f32>,
}

fn plus_outer(sum : mat4x4<f32>, w : vec4<f32>, v : vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(sum[0] + w * v.x, sum[1] + w * v.y, sum[2] + w * v.z, sum[3] + w * v.w);
}

fn step_rows() -> u32 {
    return LOADS * TOKS / 8u;
}

fn put_left(k : u32, tok : u32, v : vec4<f32>) {
    let at = k * (TOKS / 4u) + tok / 4u;
    let n = TOKS / 4u;
    left[at][tok % 4u] = v.x;
    left[at + n][tok % 4u] = v.y;
    left[at + 2u * n][tok % 4u] = v.z;
    left[at + 3u * n][tok % 4u] = v.w;
}

// Load number i of a thread: which row of the step and eight of columns; which row t and eight of
// rows.
struct Load {
    k : u32,
    col : u32,
    tok : u32,
    k8 : u32,
}

fn load(i : u32, id : u32) -> Load {
    let n = i * WG + id;
    let parts = LOADS * TOKS / 64u; // eights of rows in a step
    return Load(n / (COLS / 8u), n % (COLS / 8u), n / parts, n % parts * 8u);
}

fn stage(l : Load, w_eight : Eight, x_eight : Eight) {
    let at = l.k * (COLS / 4u) + 2u * l.col;
    right[at] = w_eight.a;
    right[at + 1u] = w_eight.b;
    put_left(l.k8, l.tok, x_eight.a);
    put_left(l.k8 + 4u, l.tok, x_eight.b);
}

fn plus_staged(sum : Block, r : u32, t : u32) -> Block {
    var b = sum;
    for (var k = 0u; k < step_rows(); k++) {
        let w0 = right[k * (COLS / 4u) + r];
        let w1 = right[k * (COLS / 4u) + r + COLS / 8u];
        let x0 = left[k * (TOKS / 4u) + t];
        let x1 = left[k * (TOKS / 4u) + t + TOKS / 8u];
        b.low = plus_outer(b.low, w0, x0);
        b.high = plus_outer(b.high, w1, x0);
        b.low2 = plus_outer(b.low2, w0, x1);
        b.high2 = plus_outer(b.high2, w1, x1);
    }
    return b;
}

// Where a thread's results are, in vec4s of columns and of rows t: 32 neighbours are 8 threads by
// columns and 4 by rows t.
struct Place {
    col4 : u32,
    tok4 : u32,
}

fn place(id : u32) -> Place {
    let across = COLS / 64u;
    return Place(id % 8u + id / 32u % across * 8u, id / 8u % 4u + id / (32u * across) * 4u);
}

// The sums over the steps [first, last).
fn column_products(tok0 : u32, col0 : u32, first : u32, last : u32, id : u32) -> Block {
    let at = place(id);
    let mine = load(0u, id);
    var next_w = Eight();
    var next_x = Eight();
    if (LOADS == 1u) {
        next_w = w_part(first * step_rows() + mine.k, col0 / 8u + mine.col);
        next_x = x_part(tok0 + mine.tok, first * step_rows() + mine.k8);
    }
    var sum = Block();
    for (var i = first; i < last; i++) {
        if (LOADS == 1u) {
            stage(mine, next_w, next_x);
        } else {
            for (var j = 0u; j < LOADS; j++) {
                let l = load(j, id);
                stage(l, w_part(i * step_rows() + l.k, col0 / 8u + l.col),
                      x_part(tok0 + l.tok, i * step_rows() + l.k8));
            }
        }
        workgroupBarrier();
        if (LOADS == 1u && i + 1u < last) {
            let row0 = (i + 1u) * step_rows();
            next_w = w_part(row0 + mine.k, col0 / 8u + mine.col);
            next_x = x_part(tok0 + mine.tok, row0 + mine.k8);
        }
        sum = plus_staged(sum, at.col4, at.tok4);
        workgroupBarrier();
    }
    return sum;
}
