// touch - how matrices are touched, so that their addresses are known when they are read.
// Neighbours are a MiB and a bit apart: without the bit they would all ask the same part of the memory.
const APART : u32 = 65536u + 104u; // vec4s

// What is read decides something that nothing depends on, so that no compiler leaves the loads out.
fn is_odd(seen : u32) -> bool {
    return seen == 0x9e3779b9u;
}
