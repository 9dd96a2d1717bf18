// known_bare - matrices without adapters add nothing to what is known of their products.
fn add_known(first : u32, lane : u32, id : u32) {
}
