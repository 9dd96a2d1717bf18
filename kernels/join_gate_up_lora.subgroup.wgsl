// join_gate_up_lora.subgroup - to[t] = x[t] + norm(branch[t]) * post, h = norm(to[t]) * next_w, then
//   y[t] = gelu(W h + s B z) * (W2 h + s B2 z2), with norm(v) = v / sqrt(mean(v^2) + eps)     (decode: one or a few rows t)
//
//   x       read   n_tok x cols f32   grid   each t in turn: as many workgroups as one likes
//   branch  read   n_tok x cols f32   bytes  W and W2 once a row t; the rest comes from the cache
//   vectors read   post and next_w    needs  cols % 16 == 0; cols <= 4 HELD and 16 WG
//                  at their places, in vec4s
//   w       read   rows x cols
//   w2      read   rows x cols
//   to      write  n_tok x cols f32
//   y       write  n_tok x rows f32, then     where p.settles rows % 16 == 0 and R WG / LANES % 16 == 0,
//                  from part_at on, for each workgroup part_rank f32: its part of A y
//   s       write  y, settled                 else s is any buffer, unwritten
//   b       read   both, the second from b_at2 on, see lib/lora.wgsl
//   a       read   of who reads y, part_rank x rows f32; part_rank 0: any buffer, unread
//
// As join_gate_up, for matrices of which at least one has adapters, one row. What gives z lies behind x and the branch: lib/ahead.wgsl.
// Every workgroup joins for itself: that is cheaper than a dispatch that all would wait for.
//
// Reference: cpu_join_gate_up() in src/ops/ops_cpu_join.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

enable subgroups;
//!for SHAPE in q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/two_weights.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$SHAPE.wgsl
//!include lib/lanes.subgroup.wgsl
//!include lib/join_gate_up.wgsl
//!include lib/ahead.wgsl
//!include lib/gate_up_lora.wgsl
//!include lib/join_gate_up_lora_params.wgsl
//!include lib/parts_of_z.wgsl

@group(0) @binding(9) var<storage, read> b : array<f32>;
@group(0) @binding(10) var<storage, read> a : array<vec4<f32>>;
