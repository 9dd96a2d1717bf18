// gate_up_bare - matrices without adapters.
fn begin_adapters(rows : vec4<u32>, tok : u32, lane : u32) {
}

fn adapted(mine : Pair, rows : vec4<u32>, tok : u32, lane : u32) -> Pair {
    return mine;
}
