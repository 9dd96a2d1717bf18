// idle - workgroups behind those of a product have nothing to do.
fn spare(id : u32) {
}
