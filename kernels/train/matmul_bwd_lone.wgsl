// matmul_bwd_lone - dx[t] += W' dy[t] + sum of the adapters s A' u[t], with u = B' dy     (training: many rows t)
//
//   dy  read    n_tok x dy_stride f32     grid   a thread per 8 columns of W and 8 rows t, columns first
//   w   read    rows x cols               bytes  W once per 8 rows t, dy once per 8 columns
//   u   read    n_tok x rank f32          needs  cols, row0, dy_stride % 4 == 0; dy finite past rows;
//   a   read    rank x cols f32, rows            rank % 8 == 0; rank 0: u, a, s are any buffers, unread;
//               of whole eights                  n_split 1
//   s   read    rank f32 at s_at
//   dx  update  n_tok x cols f32
//
// For devices in software, as matmul.lone. A turn of the loop takes four rows of W.
//
// Tolerance 1e-10 nmse: f32 sums here, f64 there.
//!include lib/lone.wgsl
//!include train/matmul_bwd_io.wgsl
//!include lib/one_weight.wgsl
//!include lib/shape_$format.wgsl

// Results of a thread: rows t are the columns.
struct Block {
    low : mat4x4<f32>,  // columns 0 .. 3 of the eight
    high : mat4x4<f32>, // columns 4 .. 7
    low2 : mat4x4<f32>, // rows t + 4 ..
    high2 : mat4x4<f32>,
}

// low and high: the eight columns of four rows k, each a column; f and f2: their factors, a column a row t.
fn plus_rows(sum : Block, low : mat4x4<f32>, high : mat4x4<f32>, f : mat4x4<f32>,
             f2 : mat4x4<f32>) -> Block {
    return Block(sum.low + low * f, sum.high + high * f, sum.low2 + low * f2, sum.high2 + high * f2);
}

// The factors of rows k .. k + 3 of W; `is` is 0 for those that are not there.
fn dy_four(toks : vec4<u32>, k : u32, is : vec4<f32>) -> mat4x4<f32> {
    let at = (toks * p.dy_stride + p.row0 + k) / 4u;
    return mat4x4<f32>(dy[at.x] * is, dy[at.y] * is, dy[at.z] * is, dy[at.w] * is);
}

fn u_four(toks : vec4<u32>, k : u32) -> mat4x4<f32> {
    let at = (toks * p.rank + k) / 4u;
    let by = scales4(p.s_at + k);
    return mat4x4<f32>(u[at.x] * by, u[at.y] * by, u[at.z] * by, u[at.w] * by);
}

fn put(tok : u32, col4 : u32, v : vec4<f32>) {
    if (tok < p.n_tok && col4 < p.cols / 4u) {
        dx[tok * (p.cols / 4u) + col4] += v;
    }
}

fn put_four(tok : u32, col4 : u32, m : mat4x4<f32>) {
    put(tok, col4, m[0]);
    put(tok + 1u, col4, m[1]);
    put(tok + 2u, col4, m[2]);
    put(tok + 3u, col4, m[3]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let i = lone_thread(wid, num, id);
    let eights = (p.cols + 7u) / 8u;
    let col = i % eights;
    let tok = i / eights * 8u;
    if (tok >= p.n_tok) {
        return;
    }
    let toks = four_from(tok, p.n_tok);
    let toks2 = four_from(tok + 4u, p.n_tok);
    var sum = Block();
    for (var k = 0u; k < p.rows; k += 4u) {
        let at = four_from(k, p.rows) * eights + col;
        let r0 = eight(at.x);
        let r1 = eight(at.y);
        let r2 = eight(at.z);
        let r3 = eight(at.w);
        let is = below(k, p.rows);
        sum = plus_rows(sum, mat4x4<f32>(r0.a, r1.a, r2.a, r3.a),
                        mat4x4<f32>(r0.b, r1.b, r2.b, r3.b), dy_four(toks, k, is),
                        dy_four(toks2, k, is));
    }
    for (var k = 0u; k < p.rank; k += 4u) {
        let at = 2u * (vec4<u32>(k, k + 1u, k + 2u, k + 3u) * eights + col);
        sum = plus_rows(sum, mat4x4<f32>(a[at.x], a[at.y], a[at.z], a[at.w]),
                        mat4x4<f32>(a[at.x + 1u], a[at.y + 1u], a[at.z + 1u], a[at.w + 1u]),
                        u_four(toks, k), u_four(toks2, k));
    }
    put_four(tok, 2u * col, sum.low);
    put_four(tok, 2u * col + 1u, sum.high);
    put_four(tok + 4u, 2u * col, sum.low2);
    put_four(tok + 4u, 2u * col + 1u, sum.high2);
}
