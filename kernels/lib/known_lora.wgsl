// known_lora - what is known already of a block's first products lacks what the adapters make of it: z lies behind it, and s B z is added
// while all else waits for M. Needs what lib/led_rows needs but for z_of(), with LANES and R as lib/float_rows has them; Params as in lib/linear_led.
//!include lib/led_rows.wgsl
@group(0) @binding(5) var<storage, read> b : array<f32>;
@group(0) @binding(6) var<storage, read_write> stream : array<f32>;

fn z_of(k : u32) -> f32 {
    return stream[p.stream_cols + p.m_rows + k];
}

// This lane's part for four rows of M, all of one matrix.
fn known_rows(first : u32, lane : u32) -> vec4<f32> {
    let rows_v = p.m_rows - p.rows_q - p.rows_k;
    if (first < p.rows_q) {
        return led_rows(four_from(first, p.rows_q), p.rows_q, p.rank, p.b_at, 0u, lane);
    }
    if (first < p.rows_q + p.rows_k) {
        return led_rows(four_from(first - p.rows_q, p.rows_k), p.rows_k, p.rank2, p.b_at2, p.rank, lane);
    }
    return led_rows(four_from(first - p.rows_q - p.rows_k, rows_v), rows_v, p.rank3, p.b_at3, p.rank + p.rank2, lane);
}

// The whole workgroup takes part.
fn add_known(mine : vec4<f32>, first : u32, lane : u32, id : u32) {
    workgroupBarrier(); // before the next sum
    let sum = add_some(mine, M_ROWS, id, M_LANES);
    if (lane < M_ROWS && first + lane < p.m_rows) {
        stream[p.stream_cols + first + lane] += sum[lane];
    }
}
