// touch_next - a workgroup behind those of a product touches `next`, the matrix that is read after it: see join_touch. Needs p with rows, and s
// with room for a vec4 behind the row.
//!include lib/touch.wgsl
fn spare(id : u32) {
    let at = id * APART;
    if (at < arrayLength(&next) && is_odd(next[at].x)) {
        s[p.rows / 4u] = vec4<u32>(at);
    }
}
