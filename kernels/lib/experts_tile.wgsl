// experts_tile - a tile of experts_plan, TOKS slots, times ROWS rows of its expert's W: what the
// kernels that work on tiles share, and what they are bound to. Needs Params with cols, mat0,
// n_mat, n_tiles, n_used, x_stride, by_slot and those of lib/lora.wgsl, and w_row(row0, i): which
// row of the expert is row i of the block; mat_rows(): how many rows an expert has. In the matrix
// tier also put_eight(), see lib/matrix.

@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind plan read array<u32>
//!bind w read array<vec4<u32>>
//!bind z read array<f32>
//!bind b read array<f32>
//!bind y update array<f32>

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

var<private> now : Tile;
var<private> row0 : u32; // first row of W

//!if tier == matrix
//!include lib/lora.wgsl
//!include lib/matrix.wgsl

fn w_eight(i : u32, col : u32) -> u32 {
    return (now.mat * mat_rows() + w_row(row0, i)) * ((p.cols + 7u) / 8u) + col;
}

fn row_of(slot : u32) -> u32 {
    return select(slot / p.n_used, slot, p.by_slot == 1u);
}

fn x_row(i : u32) -> u32 {
    return row_of(slot_of(now, i));
}
//!else
//!include lib/tile.wgsl

var<private> my_slot : u32; // whose x this thread loads
var<private> my_x : u32;    // and where it begins

// The adapters' B and z are more columns of W and x.
fn w_eight(row : u32, col : u32) -> Eight {
    let eights = (p.cols + 7u) / 8u;
    if (col < eights) {
        return eight((now.mat * mat_rows() + row) * eights + col);
    }
    if (LORA == 1u && col - eights < lora_eights()) {
        return lora_eight(now.mat + p.mat0, row, col - eights);
    }
    return Eight();
}

fn x_eight(col : u32) -> Eight {
    let eights = (p.cols + 7u) / 8u;
    if (col < eights) {
        return Eight(x[my_x + 2u * col], x[my_x + 2u * col + 1u]);
    }
    if (LORA == 1u && col - eights < lora_eights()) {
        return z_eight(my_slot * p.rank, col - eights);
    }
    return Eight();
}

fn w_part(i : u32, col : u32) -> Sixteen {
    let eights = (p.cols + 7u) / 8u;
    let row = w_row(row0, i);
    if (col + 1u < eights) {
        return sixteen((now.mat * mat_rows() + row) * eights + col);
    }
    return two_eights(w_eight(row, col), w_eight(row, col + 1u));
}

fn x_part(i : u32, col : u32) -> Sixteen {
    if (col + 1u < (p.cols + 7u) / 8u) {
        let at = my_x + 2u * col;
        return Sixteen(x[at], x[at + 1u], x[at + 2u], x[at + 3u]);
    }
    return two_eights(x_eight(col), x_eight(col + 1u));
}

// For the threads of row group 0: the products of `tile` with ROWS rows of W, from `first` on.
fn tile_products(tile : Tile, first : u32, id : u32) -> Block {
    now = tile;
    row0 = first;
    my_slot = slot_of(tile, id % (WG / 2u) / (WG / ROWS / 2u));
    my_x = select(my_slot / p.n_used, my_slot, p.by_slot == 1u) * (p.x_stride / 4u);
    let sums = block_products(0u, 0u, (p.cols + 7u) / 8u + lora_eights(), tile.n, id);
    return add_row_groups(sums, id);
}
//!end
