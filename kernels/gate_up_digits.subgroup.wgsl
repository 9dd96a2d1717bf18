// gate_up_digits.subgroup - y[t] = gelu(gate x[t]) * up x[t]     (decode: one or a few rows t)
//
//   x   read   n_tok x cols, settled   grid   each t in turn: a workgroup per R WG / LANES rows; with one
//   w   read   gate, rows x cols              more `next` is touched
//   w2  read   up, as w                bytes  both matrices once a row t; x comes from the cache
//   y   write  n_tok x rows f32        needs  cols % 16 == 0; both matrices in one shape, whole; where p.settles
//   s   write  y, settled                     rows % 16 == 0 and R WG / LANES % 16 == 0, else s is any buffer,
//   next  read  a matrix, touched             unwritten; untouched next is any buffer; touched: n_tok 1, p.settles, and
//                                             s has room for a vec4 behind the row
//
// As gate_up, for rows that the kernel before has settled (lib/settle), and it settles its own for the one after.
//
// Reference: gate_up() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

enable subgroups;
//!for SHAPE in q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/two_weights.wgsl
//!include lib/one_settled.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$SHAPE.wgsl
//!include lib/lanes.subgroup.wgsl
//!include lib/put_settled.wgsl
//!include lib/gate_up.wgsl
//!include lib/gate_up_bare.wgsl
//!include lib/touch_next.wgsl

@group(0) @binding(5) var<storage, read_write> s : array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> next : array<vec4<u32>>;
