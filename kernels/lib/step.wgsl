// step - what changes from token to token; see src/gpu/ops_gpu.c. A canvas that has stopped leaves
// no rows: products and attention of steps that were queued before that return at once.
struct Step {
    pos : u32,   // position of row 0 of the step
    rows : u32,  // rows of the step
    token : u32, // the newest token
    draw : u32,  // number of the next random draw
    seed_lo : u32,
    seed_hi : u32,
    pad0 : u32,
    pad1 : u32,
    pad2 : vec4<u32>,
    pad3 : vec4<u32>,
}
@group(0) @binding(1) var<uniform> step : Step;
