// scan - one number from each thread; each learns the sum of those before it. Needs const WG = 256.
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
