// experts_matrix - a tile of experts_plan times ROWS rows of its expert's W by subgroup matrices: what lib/experts_tile
// is for plain tiles. Needs w_row(row0, i), mat_rows() and put_eight(), see lib/matrix.wgsl.
//!include lib/experts_plan.wgsl
//!include lib/matrix.wgsl

var<private> now : Tile;
var<private> row0 : u32; // first row of W

fn w_eight(i : u32, col : u32) -> u32 {
    return (now.mat * mat_rows() + w_row(row0, i)) * ((p.cols + 7u) / 8u) + col;
}

fn row_of(slot : u32) -> u32 {
    return select(slot / p.n_used, slot, p.by_slot == 1u);
}

fn x_row(i : u32) -> u32 {
    return row_of(slot_of(now, i));
}
