// attention.subgroup - y = sum_j softmax(q.k_j) v_j over the positions j that the row sees
//
//   q        read   rows x n_head x head_dim f32       grid   ceil(rows * group / 4) * n_kv_head
//   k_cache  read   n_slots x n_kv_head x head_dim     bytes  the history once a workgroup
//   v_cache  read   as k_cache                         needs  head_dim <= 128 WG, WG the lanes of a
//   y        write  rows x n_head x head_dim f32              subgroup, group = n_head / n_kv_head
//
// As attention; the workgroup is one subgroup, so nobody waits.
// Reference: attention() in src/ops/ops_cpu.c. Tolerance 1e-9 nmse: f32 here.

enable subgroups;
//!include lib/attention.wgsl

fn sum_of_four(s : Four, lid : u32) -> Four {
    return Four(subgroupAdd(s.a), subgroupAdd(s.b), subgroupAdd(s.c), subgroupAdd(s.d));
}
