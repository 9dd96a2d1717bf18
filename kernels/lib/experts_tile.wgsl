// experts_tile - a tile of experts_plan times 64 rows of its expert's W: what the kernels that work on tiles
// share. Needs Params with cols, mat0, n_mat, n_tiles, n_used, x_stride, by_slot and those of lib/lora.wgsl, the
// buffers x and plan, a shape, and w_row(row0, i): which row of the expert is row i of the 64; mat_rows(): how many
// rows an expert has.
//!include lib/tile.wgsl
//!include lib/lora_tile.wgsl

struct Tile {
    exists : bool,
    mat : u32,   // its expert, counted in this buffer
    first : u32, // of its slots in the list
    n : u32,
}

fn tile_at(i : u32) -> Tile {
    let n = plan[4u * i + 2u];
    let mat = plan[4u * i] - p.mat0;
    return Tile(n > 0u && mat < p.n_mat, mat, plan[4u * i + 1u], n);
}

// Slot j of the tile; past the end, the last one.
fn slot_of(tile : Tile, j : u32) -> u32 {
    return plan[4u * p.n_tiles + tile.first + min(j, tile.n - 1u)];
}

struct Products {
    low : mat4x4<f32>,  // W rows r, r + 8, r + 16, r + 24 of the tile, for slots t, t + 8, t + 16, t + 24
    high : mat4x4<f32>, // W rows r + 32 ...
}

// As plus_product, for the first `blocks` eights of slots: a tile is often far from full.
fn plus_blocks(sum : mat4x4<f32>, m : mat4x4<f32>, t : u32, c : u32, blocks : u32) -> mat4x4<f32> {
    var s = sum;
    s[0] = plus_column(s[0], m, x_tile[place(t, c)]);
    if (blocks > 1u) {
        s[1] = plus_column(s[1], m, x_tile[place(t + 8u, c)]);
    }
    if (blocks > 2u) {
        s[2] = plus_column(s[2], m, x_tile[place(t + 16u, c)]);
    }
    if (blocks > 3u) {
        s[3] = plus_column(s[3], m, x_tile[place(t + 24u, c)]);
    }
    return s;
}

// In steps of 32 columns: 64 x 32 weights are decoded to workgroup memory beside 32 x 32 activations, and
// each of 64 threads adds to its 8 x 4 results.
fn tile_products(tile : Tile, row0 : u32, id : u32) -> Products {
    let eights = (p.cols + 7u) / 8u;
    let part = id % 4u; // as a loader: eight columns of four rows of W and two rows of x
    let t0 = slot_of(tile, id / 4u);
    let t1 = slot_of(tile, id / 4u + 16u);
    let x0 = select(t0 / p.n_used, t0, p.by_slot == 1u) * (p.x_stride / 4u);
    let x1 = select(t1 / p.n_used, t1, p.by_slot == 1u) * (p.x_stride / 4u);
    let r = id % 8u; // as a worker
    let t = id / 8u;
    let blocks = (tile.n + 7u) / 8u;
    var sum = Products();
    // The adapters' B and z are more columns of W and x.
    for (var first = 0u; first < eights + lora_eights(); first += 4u) {
        let col = first + part;
        let k8 = col - eights;
        let adapter = LORA == 1u && col >= eights && k8 < lora_eights();
        for (var i = 0u; i < 4u; i++) {
            let row = id / 4u + 16u * i;
            var e = Eight();
            if (col < eights) {
                e = eight((tile.mat * mat_rows() + w_row(row0, row)) * eights + col);
            } else if (adapter) {
                e = lora_eight(tile.mat + p.mat0, w_row(row0, row), k8);
            }
            put_w(row, part, e);
        }
        var a = Eight();
        var c = Eight();
        if (col < eights) {
            a = Eight(x[x0 + 2u * col], x[x0 + 2u * col + 1u]);
            c = Eight(x[x1 + 2u * col], x[x1 + 2u * col + 1u]);
        } else if (adapter) {
            a = z_eight(t0 * p.rank, k8);
            c = z_eight(t1 * p.rank, k8);
        }
        put_x(id / 4u, part, a);
        put_x(id / 4u + 16u, part, c);
        workgroupBarrier();
        for (var i = 0u; i < 8u; i++) {
            sum.low = plus_blocks(sum.low, w_columns(r, i), t, i, blocks);
            sum.high = plus_blocks(sum.high, w_columns(r + 32u, i), t, i, blocks);
        }
        workgroupBarrier();
    }
    return sum;
}
