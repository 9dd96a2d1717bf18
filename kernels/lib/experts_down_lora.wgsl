// experts_down_lora - a lane's part of what the adapters of a row's experts add.
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
