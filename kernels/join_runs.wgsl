// join_runs - to[t] = (x[t] + norm(branch[t]) * post) * scale[0], then y[t] = norm(to[t]) * next_w
//   with norm(v) = v / sqrt(mean(v^2) + eps)     (each row t)
//
//   x       read   rows x cols f32   grid   rows workgroups
//   branch  read   rows x cols f32   bytes  4 reads + 2 or 3 writes an element
//   post    read   cols f32          needs  cols % 16 == 0; cols <= 16 RUNS WG, RUNS 1 or 2; has_branch 0: nothing is added,
//   scale   read   1 f32                    branch and post are any buffers; has_scale 0: factor 1, any buffer;
//   next_w  read   cols f32                 has_next 0: y would be to[t], next_w is any buffer; puts 0: no y;
//   to      write  rows x cols f32          settles 0: no s
//   y       write  rows x cols f32
//   s       write  y, settled
//
// As join, for rows that the registers of a workgroup hold: all is read at once, and once.
// Reference: cpu_join() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis tier plain subgroup
//!include lib/lanes.wgsl
//!include lib/join_runs.wgsl
