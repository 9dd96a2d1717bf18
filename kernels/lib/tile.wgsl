// tile - a block of ROWS x TOKS results of W x, for kernels with many rows of x. Needs a shape (Eight), w_part(row, col)
// and x_part(tok, col): eight columns, number col, of a row of W and of x; zeros past the last column.
//
// A step takes 8 * PARTS columns, PARTS = WG / ROWS: each thread decodes eight columns of one row of W, and as many of
// x where there are rows left, to workgroup memory, where they lie column by column. A thread has 8 x 8 results: rows
// 4r .. 4r + 3 and the same ROWS / 2 further on, tokens alike, so a column is four loads for 64 multiply-adds. Where
// the block has fewer threads than WG, several teams share the columns of a step and add up at the end. While a step
// is computed the next one is on its way. TOKS <= ROWS, and ROWS * TOKS <= 4096 if there are several teams.
override ROWS : u32 = 64u;
override TOKS : u32 = 64u;
override WG : u32 = 256u;

var<workgroup> tile : array<vec4<f32>, 1024>; // columns of W, 4 rows a vec4; from 2 WG on those of x

// Results of a thread: tokens are the columns.
struct Block {
    low : mat4x4<f32>,   // rows 4r ..
    high : mat4x4<f32>,  // rows 4r + ROWS / 2 ..
    low2 : mat4x4<f32>,  // tokens TOKS / 2 further on
    high2 : mat4x4<f32>,
}

// Where a thread's results are.
struct Place {
    team : u32,
    row : u32, // of W in the block, the first
    tok : u32,
}

fn team_size() -> u32 {
    return ROWS * TOKS / 64u;
}

// 32 neighbours are 8 threads by rows and 4 by tokens, if there are so many.
fn place(id : u32) -> Place {
    let i = id % team_size();
    let wide = min(ROWS / 8u, 8u);
    let high = 32u / wide;
    let across = ROWS / 8u / wide;
    let r = i % wide + i / 32u % across * wide;
    let t = i / wide % high + i / (32u * across) * high;
    return Place(id / team_size(), 4u * r, 4u * t);
}

fn put_part(first : u32, rows : u32, row : u32, part : u32, e : Eight) {
    let at = first + 2u * part * rows + row / 4u;
    let n = rows / 4u;
    let c = row % 4u;
    tile[at][c] = e.a.x;
    tile[at + n][c] = e.a.y;
    tile[at + 2u * n][c] = e.a.z;
    tile[at + 3u * n][c] = e.a.w;
    tile[at + 4u * n][c] = e.b.x;
    tile[at + 5u * n][c] = e.b.y;
    tile[at + 6u * n][c] = e.b.z;
    tile[at + 7u * n][c] = e.b.w;
}

fn plus_outer(sum : mat4x4<f32>, w : vec4<f32>, v : vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(sum[0] + w * v.x, sum[1] + w * v.y, sum[2] + w * v.z, sum[3] + w * v.w);
}

// The products of `cols` eights of columns for this thread. n_tok: tokens from tok0 on; half of the work is left out
// where they are few.
fn block_products(row0 : u32, tok0 : u32, cols : u32, n_tok : u32, id : u32) -> Block {
    let parts = WG / ROWS;
    let part = id % parts; // as a loader
    let row = id / parts;
    let loads_x = row < TOKS;
    let at = place(id); // as a worker
    let columns = 8u * parts / (WG / team_size()); // of a step, for one team
    let w_at = at.team * columns * (ROWS / 4u) + at.row / 4u;
    let x_at = 2u * WG + at.team * columns * (TOKS / 4u) + at.tok / 4u;
    var sum = Block();
    var e = w_part(row0 + row, part);
    var v = Eight();
    if (loads_x) {
        v = x_part(tok0 + row, part);
    }
    for (var first = 0u; first < cols; first += parts) {
        put_part(0u, ROWS, row, part, e);
        if (loads_x) {
            put_part(2u * WG, TOKS, row, part, v);
        }
        workgroupBarrier();
        e = w_part(row0 + row, first + parts + part);
        if (loads_x) {
            v = x_part(tok0 + row, first + parts + part);
        }
        if (n_tok > TOKS / 2u) {
            for (var k = 0u; k < columns; k++) {
                let w0 = tile[w_at + k * (ROWS / 4u)];
                let w1 = tile[w_at + k * (ROWS / 4u) + ROWS / 8u];
                let x0 = tile[x_at + k * (TOKS / 4u)];
                let x1 = tile[x_at + k * (TOKS / 4u) + TOKS / 8u];
                sum.low = plus_outer(sum.low, w0, x0);
                sum.high = plus_outer(sum.high, w1, x0);
                sum.low2 = plus_outer(sum.low2, w0, x1);
                sum.high2 = plus_outer(sum.high2, w1, x1);
            }
        } else {
            for (var k = 0u; k < columns; k++) {
                let x0 = tile[x_at + k * (TOKS / 4u)];
                sum.low = plus_outer(sum.low, tile[w_at + k * (ROWS / 4u)], x0);
                sum.high = plus_outer(sum.high, tile[w_at + k * (ROWS / 4u) + ROWS / 8u], x0);
            }
        }
        workgroupBarrier();
    }
    return sum;
}

fn put_block(first : u32, m : mat4x4<f32>) {
    let n = team_size();
    tile[first] = m[0];
    tile[first + n] = m[1];
    tile[first + 2u * n] = m[2];
    tile[first + 3u * n] = m[3];
}

fn plus_put(m : mat4x4<f32>, first : u32) -> mat4x4<f32> {
    let n = team_size();
    return mat4x4<f32>(m[0] + tile[first], m[1] + tile[first + n], m[2] + tile[first + 2u * n],
                       m[3] + tile[first + 3u * n]);
}

// All teams' sums, for the threads of team 0.
fn add_teams(mine : Block, id : u32) -> Block {
    let n = team_size();
    let i = id % n;
    var sum = mine;
    for (var team = 1u; team < WG / n; team++) {
        if (id / n == team) {
            put_block(i, sum.low);
            put_block(i + 4u * n, sum.high);
            put_block(i + 8u * n, sum.low2);
            put_block(i + 12u * n, sum.high2);
        }
        workgroupBarrier();
        if (id < n) {
            sum.low = plus_put(sum.low, i);
            sum.high = plus_put(sum.high, i + 4u * n);
            sum.low2 = plus_put(sum.low2, i + 8u * n);
            sum.high2 = plus_put(sum.high2, i + 12u * n);
        }
        workgroupBarrier();
    }
    return sum;
}
