// matmul_bwd - dx[t] += W' dy[t] + sum of the adapters s A' u[t], with u = B' dy     (training: many rows t)
//
//   dy  read    n_tok x dy_stride f32     grid   a workgroup per 64 columns of W and 64 rows t and share of
//   w   read    rows x cols                      W's rows, t first, shares last
//   u   read    n_tok x rank f32          bytes  W once per 64 rows t, dy once per 64 columns
//   a   read    rank x cols f32, rows     needs  cols, row0, dy_stride % 4 == 0; dy finite past rows;
//               of whole eights                  rank % 8 == 0; rank 0: u, a, s are any buffers, unread
//   s   read    rank f32 at s_at
//   dx  update  n_tok x cols f32
//
// The buffer holds the rows [row0, row0 + rows) of W, which meet the columns row0 ... of dy. With n_split > 1 each
// share of the rows is set, not added, in an n_tok x cols of its own in dx; sum_parts adds them up.
//
// Reference: linear_bwd() in src/ops/ops_cpu_bwd.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/grid.wgsl

struct Params {
    cols : u32,
    rows : u32, // of W in this buffer
    row0 : u32, // which rows of the whole W they are
    n_tok : u32,
    dy_stride : u32, // f32 from row to row
    n_split : u32,   // shares of the rows
    scales : u32,    // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    rank : u32, // of all adapters, see lib/lora.wgsl
    s_at : u32, // where their scales begin
}

@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> dy : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> u : array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> a : array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> s : array<f32>;
@group(0) @binding(6) var<storage, read_write> dx : array<vec4<f32>>;

//!include lib/one_weight.wgsl
//!include lib/shape_$SHAPE.wgsl
//!include lib/tile_bwd.wgsl

fn put(tok : u32, col4 : u32, split : u32, v : vec4<f32>) {
    let n4 = p.cols / 4u;
    if (tok >= p.n_tok || col4 >= n4) {
        return;
    }
    if (p.n_split == 1u) {
        dx[tok * n4 + col4] += v;
    } else {
        dx[(split * p.n_tok + tok) * n4 + col4] = v;
    }
}

fn put_rows(tok : u32, col4 : u32, split : u32, m : mat4x4<f32>) {
    put(tok, col4, split, m[0]);
    put(tok + 8u, col4, split, m[1]);
    put(tok + 16u, col4, split, m[2]);
    put(tok + 24u, col4, split, m[3]);
}

fn scales4(at : u32) -> vec4<f32> {
    return vec4<f32>(s[at], s[at + 1u], s[at + 2u], s[at + 3u]);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let tok_tiles = (p.n_tok + 63u) / 64u;
    let col_tiles = (p.cols + 63u) / 64u;
    let group = flat_group(wid, num);
    let tok0 = group % tok_tiles * 64u;
    let col0 = group / tok_tiles % col_tiles * 64u;
    let split = group / tok_tiles / col_tiles;
    if (split >= p.n_split) {
        return;
    }
    let eights = (p.cols + 7u) / 8u;
    // Whole steps of 32 rows; the adapters' rows belong to the last share.
    let steps = (p.rows + 31u) / 32u;
    let first = steps * split / p.n_split;
    let last = steps * (split + 1u) / p.n_split;
    let extra = select(0u, (p.rank + 31u) / 32u, split + 1u == p.n_split);
    let right = id % 8u; // as a loader: eight columns of four rows on the right
    let col = col0 / 8u + right;
    let left = id % 8u; // and four factors of eight rows on the left
    let r = id % 8u;
    let t = id / 8u;
    var sum = Block();
    for (var step = first; step < last + extra; step++) {
        let adapter = step >= last;
        let k0 = select(step, step - last, adapter) * 32u;
        for (var i = 0u; i < 4u; i++) {
            let k = t + 8u * i;
            var e = Eight();
            if (col < eights) {
                if (adapter) {
                    if (k0 + k < p.rank) {
                        let at = 2u * ((k0 + k) * eights + col);
                        e = Eight(a[at], a[at + 1u]);
                    }
                } else if (k0 + k < p.rows) {
                    e = eight((k0 + k) * eights + col);
                }
            }
            put_right(k, 2u * right, e.a);
            put_right(k, 2u * right + 1u, e.b);
        }
        let k = k0 + 4u * left;
        for (var i = 0u; i < 8u; i++) {
            let tok = min(tok0 + t + 8u * i, p.n_tok - 1u);
            var v = vec4<f32>();
            if (adapter) {
                if (k < p.rank) {
                    v = u[(tok * p.rank + k) / 4u] * scales4(p.s_at + k);
                }
            } else if (k < p.rows) {
                v = dy[(tok * p.dy_stride + p.row0 + k) / 4u];
            }
            put_left(t + 8u * i, left, v);
        }
        workgroupBarrier();
        sum = plus_staged(sum, r, t);
        workgroupBarrier();
    }
    let col4 = col0 / 4u + r;
    put_rows(tok0 + t, col4, split, sum.s00);
    put_rows(tok0 + t, col4 + 8u, split, sum.s01);
    put_rows(tok0 + t + 32u, col4, split, sum.s10);
    put_rows(tok0 + t + 32u, col4 + 8u, split, sum.s11);
}
