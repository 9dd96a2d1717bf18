// experts_down_no_lora - y[t] = sum over slots s of weights[t][s] factor_e W_e x[t][s]     (decode:
//   one or a few rows t)
//
//   x        read    n_tok x n_used x cols, ready   grid   each row t in turn: a workgroup per R
//   ids      read    n_tok x n_used i32                      WG / LANES columns of y
//   weights  read    n_tok x n_used f32               bytes  n_used matrices a row t
//   factor   read    n_expert f32                     needs  cols % 16 == 0; has_factor 0: factor
//   w        read    n_mat x rows x cols                     is any buffer, unread, and factor_e is
//   y        update  n_tok x rows f32                        1
//
// As experts_down, for rows that an earlier kernel has left ready (lib/acts) and matrices without
// adapters.
//
// Reference: experts() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis acts f32 int8
//!axis tier plain subgroup
//!axis product own
//!axis matrices 1
//!axis input memory
//!without format in f32 f16 bf16
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl
//!include lib/experts_down.wgsl

fn adapted(mine : vec4<f32>, rows : vec4<u32>, tok : u32, lane : u32) -> vec4<f32> {
    return mine;
}
