// gate_up_bare - matrices without adapters.
fn adapted(mine : Pair, rows : vec4<u32>, tok : u32, lane : u32) -> Pair {
    return mine;
}
