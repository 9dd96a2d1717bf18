// sum.subgroup - one number from each thread; every thread learns their sum. Needs WG, at most 256.
// Lanes add first, then one number a subgroup goes through workgroup memory. The number of lanes is
// counted, not assumed. Two calls need a barrier between them.
var<workgroup> sum_part : array<f32, 64>; // subgroups have 4 lanes or more

fn workgroup_sum(v : f32, lid : u32) -> f32 {
    let ones = countOneBits(subgroupBallot(true));
    let lanes = ones.x + ones.y + ones.z + ones.w;
    let s = subgroupAdd(v);
    if (lid % lanes == 0u) {
        sum_part[lid / lanes] = s;
    }
    workgroupBarrier();
    var total = 0.0;
    for (var i = 0u; i < WG / lanes; i++) {
        total += sum_part[i];
    }
    return total;
}
