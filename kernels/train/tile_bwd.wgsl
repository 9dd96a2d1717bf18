// tile_bwd - pieces of two matrices in workgroup memory, and products of 4 x 4 blocks of them. On
// the left 64 rows of 32 factors; on the right either 64 rows of 32 as well, or 32 rows k of 64
// columns. Each of 64 threads has 8 x 8 results.
//
// The vec4 c of a row r of 32 lies in column c ^ (r % 8), so that the eight rows which neighbours
// read are in different banks.
var<workgroup> w_tile : array<vec4<f32>, 512>; // on the right
var<workgroup> x_tile : array<vec4<f32>, 512>; // on the left

fn place(r : u32, c : u32) -> u32 {
    return 8u * r + (c ^ (r & 7u));
}

// Rows r, r + 8, r + 16, r + 24 of W, transposed: each of the four columns in one vec4.
fn w_columns(r : u32, c : u32) -> mat4x4<f32> {
    return transpose(mat4x4<f32>(w_tile[place(r, c)], w_tile[place(r + 8u, c)],
                                 w_tile[place(r + 16u, c)], w_tile[place(r + 24u, c)]));
}

fn x_rows(t : u32, c : u32) -> mat4x4<f32> {
    return mat4x4<f32>(x_tile[place(t, c)], x_tile[place(t + 8u, c)], x_tile[place(t + 16u, c)],
                       x_tile[place(t + 24u, c)]);
}

// In this order every term is one fused multiply-add.
fn plus_column(sum : vec4<f32>, m : mat4x4<f32>, v : vec4<f32>) -> vec4<f32> {
    return sum + m[0] * v.x + m[1] * v.y + m[2] * v.z + m[3] * v.w;
}

fn plus_product(sum : mat4x4<f32>, m : mat4x4<f32>, v : mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(plus_column(sum[0], m, v[0]), plus_column(sum[1], m, v[1]),
                       plus_column(sum[2], m, v[2]), plus_column(sum[3], m, v[3]));
}

// Vector c of row k on the right.
fn put_right(k : u32, c : u32, v : vec4<f32>) {
    w_tile[16u * k + c] = v;
}

// Factors 4c .. 4c + 3 of row r on the left.
fn put_left(r : u32, c : u32, v : vec4<f32>) {
    x_tile[place(r, c)] = v;
}

fn right_rows(k4 : u32, c : u32) -> mat4x4<f32> {
    let at = 64u * k4 + c;
    return mat4x4<f32>(w_tile[at], w_tile[at + 16u], w_tile[at + 32u], w_tile[at + 48u]);
}

// Of a thread: rows t, t + 8, t + 16, t + 24 of each half of the 64; columns r and r + 8 in vectors
// of four.
struct Block {
    s00 : mat4x4<f32>,
    s01 : mat4x4<f32>,
    s10 : mat4x4<f32>,
    s11 : mat4x4<f32>,
}

fn plus_staged(sum : Block, r : u32, t : u32) -> Block {
    var s = sum;
    for (var k4 = 0u; k4 < 8u; k4++) {
        let m0 = right_rows(k4, r);
        let m1 = right_rows(k4, r + 8u);
        let x0 = x_rows(t, k4);
        s.s00 = plus_product(s.s00, m0, x0);
        s.s01 = plus_product(s.s01, m1, x0);
        let x1 = x_rows(t + 32u, k4);
        s.s10 = plus_product(s.s10, m0, x1);
        s.s11 = plus_product(s.s11, m1, x1);
    }
    return s;
}
