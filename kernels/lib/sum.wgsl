// sum - one number from each thread; every thread learns their sum. Needs const WG, a multiple of 16.
// Two short rounds instead of a tree of log2(WG): barriers cost more than the adds.
var<workgroup> sum_all : array<f32, WG>;
var<workgroup> sum_some : array<f32, 16>;

fn workgroup_sum(v : f32, lid : u32) -> f32 {
    sum_all[lid] = v;
    workgroupBarrier();
    if (lid < 16u) {
        var s = 0.0;
        for (var i = lid; i < WG; i += 16u) {
            s += sum_all[i];
        }
        sum_some[lid] = s;
    }
    workgroupBarrier();
    var total = 0.0;
    for (var i = 0u; i < 16u; i++) {
        total += sum_some[i];
    }
    return total;
}
