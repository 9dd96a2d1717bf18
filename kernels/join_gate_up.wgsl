// join_gate_up - to[t] = x[t] + norm(branch[t]) * post, h = norm(to[t]) * next_w, then
//   y[t] = gelu(W h) * (W2 h), with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one or a few rows t)
//
//   x       read   n_tok x cols f32   grid   each t in turn: as many workgroups as one likes
//   branch  read   n_tok x cols f32   bytes  W and W2 once a row t; the rest comes from the cache
//   vectors read   post and next_w    needs  cols % 16 == 0; cols <= 4 HELD and 16 WG
//                  at their places, in vec4s
//   w       read   rows x cols
//   w2      read   rows x cols
//   to      write  n_tok x cols f32
//   y       write  n_tok x rows f32          where p.settles rows % 16 == 0 and R WG / LANES % 16 == 0,
//   s       write  y, settled                 else s is any buffer, unwritten
//
// Every workgroup joins for itself: that is cheaper than a dispatch that all would wait for.
//
// Reference: cpu_join_gate_up() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!include lib/two_weights.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$format.wgsl
//!include lib/lanes.wgsl
//!include lib/join_gate_up.wgsl
