// join_sums - the sums of a workgroup that joins before its queries need their room.
//!include lib/sum_z.wgsl
var<workgroup> sixteen : array<vec4<f32>, 16>;

fn add_over(sum : vec4<f32>, id : u32, lanes : u32) -> vec4<f32> {
    queries[id] = sum;
    workgroupBarrier();
    if (id < 16u) {
        var part = vec4<f32>();
        for (var i = 0u; i < lanes / 16u; i++) {
            part += queries[id + 16u * i];
        }
        sixteen[id] = part;
    }
    workgroupBarrier();
    var all = vec4<f32>();
    for (var i = 0u; i < 16u; i++) {
        all += sixteen[i];
    }
    return all;
}
