// sixteens - a thread's columns are sixteen that follow each other, as what is settled must be.
fn first4(id : u32) -> u32 {
    return 4u * id;
}

fn apart4() -> u32 {
    return 1u;
}
