// weighing - columns 4i .. 4i + 3 of a vector that begins at vec4 `at` of the buffer vectors.
const NOWHERE : u32 = 0xffffffffu;

fn weight(at : u32, i : u32) -> vec4<f32> {
    if (at == NOWHERE) {
        return vec4<f32>(1.0);
    }
    return vectors[at + i];
}
