// tile - a block of ROWS x TOKS results of W x, for kernels with many rows of x. Needs lib/matvec,
// w_part(row, col) and x_part(tok, col): the eights of columns col and col + 1 of a row of W and of
// x; zeros past the last column.
//
// A step takes 8 WG / ROWS columns. Half of the threads decode sixteen columns of a row of W each,
// the others bring those of x, to workgroup memory, where they lie column by column. A thread has 8
// x 8 results: rows 4r .. 4r + 3 and the same ROWS / 2 further on, tokens alike, so a column is
// four loads for 64 multiply-adds. Where the block has fewer threads than WG, several row groups
// share the columns of a step and add up at the end. While a step is computed the next one is on
// its way. TOKS <= ROWS, and ROWS * TOKS <= 4096 if there are several row groups.
override ROWS : u32 = 64u;
override TOKS : u32 = 64u;
override WG : u32 = 256u;

// columns of W, 4 rows a vec4; from 2 WG on those of x
var<workgroup> tile : array<vec4<f32>, 1024>;

// Results of a thread: tokens are the columns.
struct Block {
    low : mat4x4<f32>,   // rows 4r ..
    high : mat4x4<f32>,  // rows 4r + ROWS / 2 ..
    low2 : mat4x4<f32>,  // tokens TOKS / 2 further on
    high2 : mat4x4<f32>,
}

// Where a thread's results are.
struct Place {
    row_group : u32,
    row : u32, // of W in the block, the first
    tok : u32,
}

fn group_size() -> u32 {
    return ROWS * TOKS / 64u;
}

// 32 neighbours are 8 threads by rows and 4 by tokens, if there are so many.
fn place(id : u32) -> Place {
    let i = id % group_size();
    let wide = min(ROWS / 8u, 8u);
    let high = 32u / wide;
    let across = ROWS / 8u / wide;
    let r = i % wide + i / 32u % across * wide;
    let t = i / wide % high + i / (32u * across) * high;
    return Place(id / group_size(), 4u * r, 4u * t);
}

fn put_four(at : u32, n : u32, c : u32, v : vec4<f32>) {
    tile[at][c] = v.x;
    tile[at + n][c] = v.y;
    tile[at + 2u * n][c] = v.z;
    tile[at + 3u * n][c] = v.w;
}

// Sixteen columns of a row; `rows` is how many there are.
fn put_part(first : u32, rows : u32, row : u32, part : u32, e : Sixteen) {
    let at = first + 4u * part * rows + row / 4u;
    let n = rows / 4u;
    put_four(at, n, row % 4u, e.a);
    put_four(at + rows, n, row % 4u, e.b);
    put_four(at + 2u * rows, n, row % 4u, e.c);
    put_four(at + 3u * rows, n, row % 4u, e.d);
}

fn plus_outer(sum : mat4x4<f32>, w : vec4<f32>, v : vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(sum[0] + w * v.x, sum[1] + w * v.y, sum[2] + w * v.z, sum[3] + w * v.w);
}

// Eights of columns in a step.
fn step_eights() -> u32 {
    return WG / ROWS;
}

// The products of `cols` eights of columns for this thread. n_tok: tokens from tok0 on; half of the
// work is left out where they are few.
fn block_products(row0 : u32, tok0 : u32, cols : u32, n_tok : u32, id : u32) -> Block {
    return block_products_from(row0, tok0, 0u, cols, n_tok, id);
}

// The same from an eight on that begins a step, as far as `cols`.
fn block_products_from(row0 : u32, tok0 : u32, start : u32, cols : u32, n_tok : u32, id : u32) ->
    Block {
    let parts = WG / ROWS / 2u; // sixteens of columns in a step
    let loads_w = id < WG / 2u; // as a loader
    let part = id % (WG / 2u) % parts;
    let row = id % (WG / 2u) / parts;
    let loads_x = !loads_w && row < TOKS;
    let at = place(id); // as a worker
    let columns = 16u * parts / (WG / group_size()); // of a step, for one row group
    let w_at = at.row_group * columns * (ROWS / 4u) + at.row / 4u;
    let x_at = 2u * WG + at.row_group * columns * (TOKS / 4u) + at.tok / 4u;
    var sum = Block();
    var e = Sixteen();
    if (loads_w) {
        e = w_part(row0 + row, start + 2u * part);
    } else if (loads_x) {
        e = x_part(tok0 + row, start + 2u * part);
    }
    for (var first = start; first < cols; first += 2u * parts) {
        if (loads_w) {
            put_part(0u, ROWS, row, part, e);
        } else if (loads_x) {
            put_part(2u * WG, TOKS, row, part, e);
        }
        workgroupBarrier();
        let col = first + 2u * (parts + part);
        if (loads_w) {
            e = w_part(row0 + row, col);
        } else if (loads_x) {
            e = x_part(tok0 + row, col);
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
    let n = group_size();
    tile[first] = m[0];
    tile[first + n] = m[1];
    tile[first + 2u * n] = m[2];
    tile[first + 3u * n] = m[3];
}

fn plus_put(m : mat4x4<f32>, first : u32) -> mat4x4<f32> {
    let n = group_size();
    return mat4x4<f32>(m[0] + tile[first], m[1] + tile[first + n], m[2] + tile[first + 2u * n],
                       m[3] + tile[first + 3u * n]);
}

// All row groups' sums, for the threads of row group 0.
fn add_row_groups(mine : Block, id : u32) -> Block {
    let n = group_size();
    let i = id % n;
    var sum = mine;
    for (var row_group = 1u; row_group < WG / n; row_group++) {
        if (id / n == row_group) {
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

// ---- adapters, see lib/lora: B and z as more columns of W and x ----

// There are kernels with and without adapters: on some devices code costs even where it is not run.
override LORA : u32 = 0u;

// Columns of B and z that follow those of W and x, in eights.
fn lora_eights() -> u32 {
    return select(0u, p.rank / 8u, LORA == 1u);
}

// Columns 8i .. 8i + 7 of a row of B, and the same of z, scaled.
fn lora_eight(mat : u32, row : u32, i : u32) -> Eight {
    let n = p.b_rows;
    let at = (mat * p.rank + 8u * i) * n + row;
    return Eight(vec4<f32>(b[at], b[at + n], b[at + 2u * n], b[at + 3u * n]),
                 vec4<f32>(b[at + 4u * n], b[at + 5u * n], b[at + 6u * n], b[at + 7u * n]));
}

fn lora_scaled(at : u32, s : u32) -> vec4<f32> {
    return vec4<f32>(z[at] * b[s], z[at + 1u] * b[s + 1u], z[at + 2u] * b[s + 2u],
                     z[at + 3u] * b[s + 3u]);
}

fn z_eight(z_base : u32, i : u32) -> Eight {
    let at = z_base + 8u * i;
    let s = p.b_scales + 8u * i;
    return Eight(lora_scaled(at, s), lora_scaled(at + 4u, s + 4u));
}
