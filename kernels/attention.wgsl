// attention - y = sum_j softmax(q.k_j) v_j over the positions j that the row sees
//
//   q        read   rows x n_head x head_dim f32       grid   ceil(rows * group / 4) * n_kv_head
//   k_cache  read   n_slots x n_kv_head x head_dim     bytes  the history once a workgroup
//   v_cache  read   as k_cache                         needs  head_dim <= 128 WG, WG <= 64 (subgroup:
//   y        write  rows x n_head x head_dim f32              its lanes), group = n_head / n_kv_head
//
// For devices that run on a CPU, where threads that meet are dear and neighbours' loads are vectors:
// few threads, side by side over the columns, four queries and four keys in registers. attention_split
// and attention_tile are for GPUs. Query m of a kv head is head m % group of row m / group; row t is at
// pos + pos_offset + t. In the subgroup tier the workgroup is one subgroup, so nobody waits.
// Reference: attention() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.

//!axis tier plain subgroup
//!include lib/attention.wgsl

//!if tier == subgroup
enable subgroups;

fn sum_of_four(s : Four, lid : u32) -> Four {
    return Four(subgroupAdd(s.a), subgroupAdd(s.b), subgroupAdd(s.c), subgroupAdd(s.d));
}
//!else
var<workgroup> four : array<Four, 64>;

fn sum_of_four(s : Four, lid : u32) -> Four {
    four[lid] = s;
    workgroupBarrier();
    var sum = four[0];
    for (var i = 1u; i < WG; i++) {
        sum.a += four[i].a;
        sum.b += four[i].b;
        sum.c += four[i].c;
        sum.d += four[i].d;
    }
    workgroupBarrier(); // before the next ones
    return sum;
}
//!end
