// experts_down - y[t] = sum over slots s of weights[t][s] factor_e W_e x[t][s], adapters included
//
//   x        read    n_tok x n_used x cols f32     grid   each row t in turn: a workgroup per
//   ids      read    n_tok x n_used i32                   R WG / LANES columns of y
//   weights  read    n_tok x n_used f32            bytes  n_used matrices a row t
//   factor   read    n_expert f32                  needs  x_slot % 4 == 0; has_factor 0: factor is
//   w        read    n_mat x rows x cols                  any buffer, unread, and factor_e is 1
//   y        update  n_tok x rows f32                     rank 0: z and b are any buffers, unread
//   z        read    n_tok x n_used x rank f32
//   b        read    see lib/lora.wgsl
//
// The buffer holds the experts [mat0, mat0 + n_mat); the others do not count. With add 1 the sum
// is added to y.
//
// Reference: experts() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!axis product own
//!axis matrices 1
//!axis input memory
//!axis acts rows
//!include lib/lanes.wgsl
//!include lib/matvec.wgsl
//!include lib/experts_down.wgsl
//!include lib/lora.wgsl
//!bind z read array<f32>
//!bind b read array<f32>

fn adapted(mine : vec4<f32>, rows : vec4<u32>, tok : u32, lane : u32) -> vec4<f32> {
    var sum = mine;
    for (var slot = tok * p.n_used; p.rank > 0u && slot < (tok + 1u) * p.n_used; slot++) {
        if (u32(ids[slot]) - p.mat0 < p.n_mat) {
            sum += share(slot) * lora_rows(u32(ids[slot]), rows, slot * p.rank, lane, LANES);
        }
    }
    return sum;
}
