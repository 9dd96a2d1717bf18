// sum_z - the sum of sixteen threads, for the first of them. Needs `spread` in workgroup memory, a number for each thread or more, which nobody reads. The
// whole workgroup takes part; before the next one it needs a barrier.
fn sum_z(v : f32, lid : u32) -> f32 {
    spread[lid] = v;
    workgroupBarrier();
    var sum = 0.0;
    if (lid % 16u == 0u) {
        for (var i = 0u; i < 16u; i++) {
            sum += spread[lid + i];
        }
    }
    return sum;
}
