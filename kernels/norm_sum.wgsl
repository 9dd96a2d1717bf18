// norm_sum - y[t] = norm(a[t]) * a_w + norm(b[t]) * b_w  with norm(v) = v / sqrt(mean(v^2) + eps)     (each row t)
//
//   a    read   rows x cols f32   grid   rows workgroups
//   b    read   rows x cols f32   bytes  4 reads + 1 write an element
//   a_w  read   cols f32          needs  cols % 16 == 0; cols <= 16 RUNS WG, RUNS 1 or 2
//   b_w  read   cols f32
//   y    write  rows x cols f32
//
// Rows stay in the registers of a workgroup: all is read at once, and once.
// Reference: cpu_norm_sum() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis tier plain subgroup
//!include lib/lanes.wgsl
//!include lib/norm_sum.wgsl
