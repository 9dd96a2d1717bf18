// known_lora - what is known already of a block's first products lacks what the adapters make of it: z lies behind it, and s B z is added
// while all else waits for M. Needs what lib/led_rows needs but for z_of(), Params as in lib/linear_led.
//!include lib/led_rows.wgsl
@group(0) @binding(5) var<storage, read> b : array<f32>;
@group(0) @binding(6) var<storage, read_write> stream : array<f32>;

fn z_of(k : u32) -> f32 {
    return stream[p.stream_cols + p.m_rows + k];
}

// To R rows of M, all of one matrix. The whole workgroup takes part.
fn add_known(first : u32, lane : u32, id : u32) {
    var mine = vec4<f32>();
    let rows_v = p.m_rows - p.rows_q - p.rows_k;
    if (first < p.rows_q) {
        mine = led_rows(four_from(first, p.rows_q), p.rows_q, p.rank, p.b_at, 0u, lane);
    } else if (first < p.rows_q + p.rows_k) {
        mine = led_rows(four_from(first - p.rows_q, p.rows_k), p.rows_k, p.rank2, p.b_at2, p.rank, lane);
    } else if (first < p.m_rows) {
        mine = led_rows(four_from(first - p.rows_q - p.rows_k, rows_v), rows_v, p.rank3, p.b_at3, p.rank + p.rank2, lane);
    }
    workgroupBarrier(); // before the next sum
    let sum = add_lanes(mine, id);
    for (var k = 0u; k < (R + LANES - 1u) / LANES; k++) {
        let r = lane + k * LANES;
        if (r < R && first + r < p.m_rows) {
            stream[p.stream_cols + first + r] += sum[r];
        }
    }
}
