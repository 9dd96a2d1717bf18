// tile - a piece of two matrices in workgroup memory, 32 columns of each, and products of 4 x 4 blocks.
// The vec4 c of row r lies in column c ^ (r % 8), so that the eight rows which neighbours read are in
// different banks.
var<workgroup> w_tile : array<vec4<f32>, 512>; // 64 rows
var<workgroup> x_tile : array<vec4<f32>, 512>; // 64 rows, or fewer

fn place(r : u32, c : u32) -> u32 {
    return 8u * r + (c ^ (r & 7u));
}

// Rows r, r + 8, r + 16, r + 24 of W, turned: each of the four columns in one vec4.
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

// Eight columns of row r.
fn put_w(r : u32, part : u32, e : Eight) {
    w_tile[place(r, 2u * part)] = e.a;
    w_tile[place(r, 2u * part + 1u)] = e.b;
}

fn put_x(r : u32, part : u32, e : Eight) {
    x_tile[place(r, 2u * part)] = e.a;
    x_tile[place(r, 2u * part + 1u)] = e.b;
}
