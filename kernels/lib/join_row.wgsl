// join_row - a row is joined by a workgroup whose registers hold it: all is read at once, and once. Needs what lib/columns needs, and
// finish(i, c, j): what becomes of the columns from vec4 i of the row on.
//!include lib/base.wgsl
//!include lib/joining.wgsl
//!include lib/columns.wgsl

override RUNS : u32 = 1u; // of sixteen columns, that a thread has

fn join_row(row : u32, id : u32) {
    let n = p.cols / 4u;
    let i = 4u * id;
    let k = 4u * (id + WG);
    var c = Columns();
    var d = Columns();
    if (i < n) {
        c = columns(row * n + i, i);
    }
    if (RUNS > 1u && k < n) {
        d = columns(row * n + k, k);
    }
    let j = joining_from(c.sums + d.sums, row * n, id);
    if (i < n) {
        finish(i, c, j);
    }
    if (RUNS > 1u && k < n) {
        finish(k, d, j);
    }
}
