// join_lora - to[t] = (x[t] + norm(branch[t]) * post) * scale[0], h = norm(to[t]) * next_w (has_next 0: h = to[t]), then
//   z[t] = A h of up to three matrices, with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one or a few rows t)
//
//   x       read   n_tok x cols f32   grid   each t in turn: two workgroups or more
//   branch  read   n_tok x cols f32   bytes  each A once a row t; the rest comes from the cache
//   vectors read   post, scale and    needs  cols % 16 == 0; cols <= 16 WG; has_branch 0: nothing is added, branch is any
//                  next_w at their           buffer; has_scale 0: factor 1; rows2 or rows3 0: any buffers,
//                  places, in vec4s          unread
//   a       read   rows x cols f32
//   a2      read   rows2 x cols f32
//   a3      read   rows3 x cols f32
//   to      write  n_tok x cols f32
//   norm    write  h; puts 0: any buffer, unwritten
//   s       write  h, settled; behind it z, f32: from word `at` on n_tok x rows, from at2 on n_tok x rows2, from at3 on
//                  n_tok x rows3
//
// What the adapters of all matrices that read one stream make of it: the products after it (linears_digits_lora,
// gate_up_digits_lora, linear) read h and z. Every workgroup joins for itself; there are few.
//
// Reference: cpu_join_linears() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis tier plain subgroup
//!include lib/lanes.wgsl
//!include lib/join_lora.wgsl
