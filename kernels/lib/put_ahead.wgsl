// put_ahead - what a row of lib/ahead gives for the stream: row k of it goes behind the next state. Needs Params with cols, and the
// buffer to.
fn put_ahead(k : u32, v : f32) {
    let at = p.cols + k;
    to[at >> 2u][at & 3u] = v;
}
