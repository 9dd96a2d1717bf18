// put_partial - where a share's result goes: to the buffer `partial`. Needs lib/attention_split, and share4(): vec4s of a share's result.
// Head `head` of the part: where its share's result begins.
fn partial_at(part : Part, head : u32) -> u32 {
    return ((part.row_q + head) * p.n_split + part.split) * share4();
}

fn put_end(part : Part, head : u32, top : f32, total : f32) {
    partial[partial_at(part, head) + head4()] = vec4<f32>(top, total, 0.0, 0.0);
}
