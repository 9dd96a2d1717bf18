// embed - y[t] = table[ids[t]] * scale
//
//   w    read   rows x cols          grid   one thread per eight numbers, workgroups over x and y
//   ids  read   n_tok i32            bytes  one row of the table and of y per t
//   y    write  n_tok x cols f32     needs  cols % 4 == 0, y_stride % 4 == 0
//
// The buffer may hold only the rows [row0, row0 + rows) of the table: y[t] of other ids stays.
//
// Reference: embed() in src/ops/ops_cpu.c. Tolerance 1e-12 nmse: a multiply-add
// may be fused here.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis product own
//!axis matrices 1
//!axis input none
//!include lib/matvec.wgsl

struct Params {
    cols : u32,
    rows : u32,     // of the table in this buffer
    row0 : u32,     // which rows they are
    n_tok : u32,
    y_stride : u32, // f32 from row to row
    scales : u32,   // offsets in u32 words, see src/gpu/repack.h
    high : u32,
    d : u32,
    scale : f32,
}

override WG : u32 = 64u;

@group(0) @binding(0) var<uniform> p : Params;
//!bind w read array<vec4<u32>>
//!bind ids read array<i32>
//!bind y update array<vec4<f32>>

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
    let eights = (p.cols + 7u) / 8u;
    let i = flat_group(wid, num) * WG + id;
    let tok = i / eights;
    let col = i % eights;
    if (tok >= p.n_tok) {
        return;
    }
    let row = u32(ids[tok]) - p.row0;
    if (row >= p.rows) {
        return;
    }
    let e = eight(row * eights + col);
    let to = tok * (p.y_stride / 4u) + 2u * col;
    y[to] = e.a * p.scale;
    if (8u * col + 4u < p.cols) {
        y[to + 1u] = e.b * p.scale;
    }
}
