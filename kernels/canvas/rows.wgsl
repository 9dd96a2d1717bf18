// rows - what kernels know of a canvas: src/ops/canvas.h has its memory and its random
// numbers. Needs the buffer `canvas` : array<u32>.
//!include lib/base.wgsl

// Words of struct canvas_state.
const STATE_STEP : u32 = 0u;
const STATE_STOPPED : u32 = 1u;
const STATE_STABLE : u32 = 2u;
const STATE_ACCEPTED : u32 = 3u;
const STATE_ENTROPY : u32 = 4u;
const STATE_KEY : u32 = 5u;
const STATE_N_STEPS : u32 = 6u;
const STATE_N_STABLE : u32 = 7u;
const STATE_T_MIN : u32 = 8u;
const STATE_T_MAX : u32 = 9u;
const STATE_BOUND : u32 = 10u;
const STATE_CONFIDENCE : u32 = 11u;

fn row_key(key : u32, counted : u32, row : u32) -> u32 {
    let of_step = mix32(vec4<u32>(key + 0x9e3779b9u * counted)).x;
    return mix32(vec4<u32>(of_step + 0x9e3779b9u * row)).x;
}

fn random_bits(of_row : u32, tokens : vec4<u32>) -> vec4<u32> {
    return mix32(vec4<u32>(of_row) ^ mix32(tokens + 0x9e3779b9u));
}
