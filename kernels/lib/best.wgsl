// best - the best (key, id) of a workgroup: the largest key, of equals the lowest id. Needs WG,
// at most 256. Every thread learns it.
var<workgroup> best_all : array<vec2<u32>, 256>;
var<workgroup> best_some : array<vec2<u32>, 16>;

fn better(a : vec2<u32>, b : vec2<u32>) -> bool {
    return a.x > b.x || (a.x == b.x && a.y < b.y);
}

fn workgroup_best(mine : vec2<u32>, lid : u32) -> vec2<u32> {
    best_all[lid] = mine;
    workgroupBarrier();
    if (lid < 16u) {
        var b = best_all[lid];
        for (var i = lid + 16u; i < WG; i += 16u) {
            let c = best_all[i];
            if (better(c, b)) {
                b = c;
            }
        }
        best_some[lid] = b;
    }
    workgroupBarrier();
    var b = best_some[0];
    for (var i = 1u; i < 16u; i++) {
        let c = best_some[i];
        if (better(c, b)) {
            b = c;
        }
    }
    return b;
}
