// experts_gate_up_digits - y[t][slot] = gelu(gate_e x[t]) * up_e x[t], e = ids[t][slot]     (decode: one or a few rows t)
//
//   x        read   n_tok x cols, settled        grid   each (t, slot) in turn: a workgroup per R WG / LANES columns of y; with
//   w        read   gate, n_mat matrices                ROUTES before them one for each t
//   w2       read   up, as w                     bytes  both matrices of e once a (t, slot); x comes from the cache
//   choice   read   n_tok x n_used i32: ids, or  needs  cols % 16 == 0; R 1 or 2; where p.settles rows % 16 == 0 and
//                   n_tok x n_expert f32: scores        R WG / LANES % 16 == 0, else s is any buffer, unwritten; ROUTES
//   y        write  n_tok x n_used x rows f32           1: n_used <= n_expert <= 256; 0: the others are any buffers,
//   s        write  y, settled                          unwritten
//   ids      write  n_tok x n_used i32
//   weights  write  n_tok x n_used f32
//
// As experts_gate_up, for rows that the kernel before has settled (lib/settle) and matrices without adapters. Where one
// tensor has both, gate first, w and w2 are the same. The buffers hold the experts [mat0, mat0 + n_mat): y of other experts
// stays as it is. With ROUTES there are no ids yet: every workgroup finds its own among the scores, and some make what router does.
//
// Reference: experts() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!without format in f32 f16 bf16
//!include lib/two_weights.wgsl
//!include lib/one_settled.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$format.wgsl
//!include lib/lanes.wgsl
//!include lib/put_settled.wgsl
//!include lib/experts_gate_up_digits.wgsl
