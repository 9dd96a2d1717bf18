// experts_matrix - a tile of experts_plan times ROWS rows of its expert's W by subgroup matrices: what lib/experts_tile
// is for plain tiles. Needs w_row(row0, i), mat_rows() and put_eight(), see lib/matrix.wgsl.
//!include lib/experts_plan.wgsl
//!include lib/matrix.wgsl

var<private> now : Tile;
var<private> row0 : u32; // first row of W

fn w_part(i : u32, col : u32) -> Halves {
    let eights = (p.cols + 7u) / 8u;
    let at = (now.mat * mat_rows() + w_row(row0, i)) * eights + col;
    if (col + 1u < eights) {
        return to_halves(sixteen(at));
    }
    if (col < eights) {
        return to_halves(both(eight(at), Eight()));
    }
    return Halves();
}

fn row_of(slot : u32) -> u32 {
    return select(slot / p.n_used, slot, p.by_slot == 1u);
}

fn x_row(i : u32) -> u32 {
    return row_of(slot_of(now, i));
}
