// gate_up_bare - matrices without adapters.
struct PairColumn {
    nothing : u32,
}

fn begin_adapted(rows : vec4<u32>, lane : u32) -> PairColumn {
    return PairColumn();
}

fn adapted(mine : Pair, begun : PairColumn, rows : vec4<u32>, tok : u32, lane : u32) -> Pair {
    return mine;
}
