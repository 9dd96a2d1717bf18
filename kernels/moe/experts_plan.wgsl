// experts_plan - the slots (row t, choice s) sorted by their expert, in tiles of at most 32 slots
//   of one expert
//
//   ids   read   n_slots i32                          grid   one workgroup
//   plan  write  n_tiles x (expert, first, n, 0) u32, bytes  ids twice, plan once
//                then n_slots u32: slots by expert    needs  n_expert <= 1024, ids below it,
//                                                            n_tiles >= n_slots / 32 + n_expert
//
// Tile i holds the slots [first, first + n) of the second list; the tiles that are left over have n
// = 0. Which slot of an expert comes first is up to the threads: a slot's result does not depend on
// its neighbours.
// Reference: experts() in src/ops/ops_cpu_fast.c, which groups alike. Tolerance 0: counting.

//!axis tier plain
//!include lib/sum.wgsl

struct Params {
    n_slots : u32,
    n_expert : u32,
    n_tiles : u32,
}
@group(0) @binding(0) var<uniform> p : Params;
//!bind ids read array<i32>
//!bind plan update array<u32>

const WG : u32 = 256u;
const EACH : u32 = 4u; // experts a thread
const TILE : u32 = 32u;

var<workgroup> counts : array<atomic<u32>, 1024>;

fn tiles_of(n : u32) -> u32 {
    return (n + TILE - 1u) / TILE;
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) lid : u32) {
    for (var i = 0u; i < EACH; i++) {
        atomicStore(&counts[lid * EACH + i], 0u);
    }
    workgroupBarrier();
    for (var s = lid; s < p.n_slots; s += WG) {
        atomicAdd(&counts[ids[s]], 1u);
    }
    workgroupBarrier();

    // What the experts of this thread have, and what those before them have: slots and tiles.
    var n_slots = 0u;
    var n_tiles = 0u;
    for (var i = 0u; i < EACH; i++) {
        let n = atomicLoad(&counts[lid * EACH + i]);
        n_slots += n;
        n_tiles += tiles_of(n);
    }
    var first = u32(workgroup_scan(f32(n_slots), lid).x); // exact: below 2^24
    let tiles = workgroup_scan(f32(n_tiles), lid);
    var tile = u32(tiles.x);
    for (var i = 0u; i < EACH; i++) {
        let e = lid * EACH + i;
        let n = atomicLoad(&counts[e]);
        for (var at = 0u; at < n; at += TILE) {
            plan[4u * tile] = e;
            plan[4u * tile + 1u] = first + at;
            plan[4u * tile + 2u] = min(TILE, n - at);
            plan[4u * tile + 3u] = 0u;
            tile += 1u;
        }
        atomicStore(&counts[e], first); // from now on: where the next slot goes
        first += n;
    }
    for (var i = u32(tiles.y) + lid; i < p.n_tiles; i += WG) {
        plan[4u * i + 2u] = 0u;
    }
    workgroupBarrier();
    for (var s = lid; s < p.n_slots; s += WG) {
        plan[4u * p.n_tiles + atomicAdd(&counts[ids[s]], 1u)] = s;
    }
}
