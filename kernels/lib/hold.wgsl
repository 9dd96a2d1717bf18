// hold - a workgroup joins, and keeps what its block reads of the stream. Needs what lib/columns needs.
//!include lib/held.wgsl
//!include lib/columns.wgsl

// The whole workgroup takes part, a thread for sixteen columns. One of the workgroups that share a row writes its next state.
fn hold(tok : u32, id : u32, writes : bool) {
    let n = p.cols / 4u;
    let i = 4u * id;
    let at = tok * n + i;
    let mine = i < n;
    var c = Columns();
    if (mine) {
        c = columns(at, i);
    }
    let j = joining_from(c.sums, at, id);
    if (mine) {
        let state = next_state(c, j);
        if (writes) {
            put_state(at, state);
        }
        keep(i, leading(c, j, state));
    }
    workgroupBarrier();
}
