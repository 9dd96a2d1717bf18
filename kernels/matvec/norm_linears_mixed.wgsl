// norm_linears_mixed - to[t] = (x[t] + norm(branch[t]) * post) * scale[0],
//   h = norm(to[t]) * next_w, then y[t] = W h, y2[t] = W2 h, y3[t] = W3 h,
//   with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one or a few rows t)
//
//   x        read   n_tok x cols f32
//   branch   read   n_tok x cols f32
//   vectors  read   post, scale and next_w at their places, in vec4s
//   w        read   rows x cols
//   w2       read   rows2 x cols
//   w3       read   rows3 x cols of Q6_K
//   to       write  n_tok x cols f32
//   y        write  n_tok x rows f32
//   y2       write  n_tok x rows2 f32
//   y3       write  n_tok x rows3 f32
//   grid   each t in turn: any number of workgroups
//   bytes  each matrix once a row t; the rest comes from the cache
//   needs  cols % 16 == 0; cols <= 4 SHARED_ROW and 16 WG; has_branch 0: nothing is added, branch
//          is any buffer; has_scale 0: factor 1; rows2 or rows3 0: any buffers, unread and
//          unwritten
//
// As norm_linears, for the layers of usual files whose values have more bits than their queries and
// keys.
//
// With BRANCHES 2 there are two branches: norm(branch) * branch_w + norm(other) * other_w takes the
// place of branch, where other lies in the buffer branch, and branch_w and other_w in vectors.
//
// rows, rows2 and rows3 are the rows of p.w[0], p.w[1] and p.w[2].
//
// Reference: the nodes of rule norm_linears, in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums
// here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product own
//!axis matrices 3
//!axis input shared_row
//!axis third q6_k
//!axis vectors one
//!without !(format in q4_k q5_k)
//!include lib/lanes.wgsl
//!include lib/linears.wgsl
