// spread - a thread's columns are four in each quarter of the row, so that neighbours read what lies together. Needs Params with cols.
fn first4(id : u32) -> u32 {
    return id;
}

fn apart4() -> u32 {
    return p.cols / 16u;
}
