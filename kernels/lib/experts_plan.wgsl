// experts_plan - the tiles that the kernel of that name has made. Needs Params with mat0, n_mat, n_tiles, and the buffer
// plan.
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
