// sum - one number from each thread: every thread learns their sum, or that of those before it.
// Needs WG, at most 256; a scan needs 256. Two sums need a barrier between them.
//!if tier == subgroup
// Lanes add first, then one number a subgroup goes through workgroup memory. The number of lanes is
// counted, not assumed.
enable subgroups;
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
//!else
// Two short rounds instead of a tree of log2(WG): barriers cost more than the adds. On a
// device in software each barrier is slow: there WG is small, and one round is enough.
var<workgroup> sum_all : array<f32, 256>;
var<workgroup> sum_some : array<f32, 16>;

fn workgroup_sum(v : f32, lid : u32) -> f32 {
    sum_all[lid] = v;
    workgroupBarrier();
    var total = 0.0;
    if (WG <= 16u) {
        for (var i = 0u; i < WG; i++) {
            total += sum_all[i];
        }
        workgroupBarrier(); // before the next call
        return total;
    }
    if (lid < 16u) {
        var s = 0.0;
        for (var i = lid; i < WG; i += 16u) {
            s += sum_all[i];
        }
        sum_some[lid] = s;
    }
    workgroupBarrier();
    for (var i = 0u; i < 16u; i++) {
        total += sum_some[i];
    }
    return total;
}
//!end

// ---- scan ----

var<workgroup> scan_all : array<f32, 256>;
var<workgroup> scan_16 : array<f32, 16>; // of 16 threads each

// (sum before this thread, sum of all)
fn workgroup_scan(v : f32, lid : u32) -> vec2<f32> {
    scan_all[lid] = v;
    workgroupBarrier();
    if (lid < 16u) {
        var s = 0.0;
        for (var i = 0u; i < 16u; i++) {
            s += scan_all[lid * 16u + i];
        }
        scan_16[lid] = s;
    }
    workgroupBarrier();
    var before = 0.0;
    var total = 0.0;
    for (var i = 0u; i < 16u; i++) {
        if (i == lid / 16u) {
            before = total;
        }
        total += scan_16[i];
    }
    for (var i = lid / 16u * 16u; i < lid; i++) {
        before += scan_all[i];
    }
    workgroupBarrier(); // before the next call
    return vec2<f32>(before, total);
}
