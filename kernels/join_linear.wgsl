// join_linear - to[t] = (x[t] + norm(branch[t]) * post) * scale[0], h = norm(to[t]) * next_w, then y[t] = W h,
//   with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one or a few rows t)
//
//   x       read   n_tok x cols f32   grid   each t in turn: as many workgroups as one likes
//   branch  read   n_tok x cols f32   bytes  W once a row t; the rest comes from the cache
//   vectors read   post, scale and    needs  cols % 16 == 0; cols <= 4 HELD and 16 WG; has_branch 0: nothing is added, branch
//                  next_w at their           is any buffer; has_scale 0: factor 1
//                  places, in vec4s
//   w       read   rows x cols
//   to      write  n_tok x cols f32
//   y       write  n_tok x rows f32
//
// join_linears with one matrix and one branch, in fewer buffers, each of which costs the host.
//
// Reference: cpu_join_linears() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!include lib/one_weight.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$format.wgsl
//!include lib/lanes.wgsl
//!include lib/join_linear.wgsl
