// attend_led_shared - the kernel attend_shared_led without add_over(): a tier chooses.
//!include lib/attend_led.wgsl
@group(0) @binding(9) var<storage, read> k_cache : array<vec4<u32>>;
@group(0) @binding(10) var<storage, read> v_cache : array<vec4<u32>>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) lid : u32) {
    let group = flat_group(wid, num);
    let part = part_of(group);
    if (!part.exists) {
        return;
    }
    before_share(part, lid);
    let early = ask_early(part, lid);
    join_stream(lid, group == p.writer);
    put_led_queries(part, early, lid);
    workgroupBarrier();
    sum_queries(lid);
    attend_share(part, lid);
    after_share(part, lid);
}
