// linear_led_lora.subgroup - y = W x and, behind y, M x; stream += s B z     (decode: one row)
//
//   x       read    cols f32                          grid   groups for W, then those for M: each R WG / LANES rows, or WG / 8
//   w       read    rows x cols                       bytes  W, B and M once; x comes from the cache
//   m       read    M, m_rows x cols f32
//                                                     needs  cols % 8 == 0; row counts of the matrices % 4 == 0; LANES 32, R 4
//   y       write   rows - n_more f32, then m_rows f32, then n_more f32
//   b       read    B of the matrices that M is of, see lib/led_rows.wgsl
//   stream  update  behind stream_cols f32: m_rows f32, then z
//
// M is for the block after the next join: lib/ahead.wgsl. W is merged with its adapters, and M has theirs and those of the matrices it is of.
//
// Reference: linear() in src/ops/ops_cpu.c, of both products. Tolerance 1e-10 nmse: f32 sums here, f64 there.

enable subgroups;
//!for SHAPE in f32
//!include lib/one_weight.wgsl
//!include lib/one_input.wgsl
//!include lib/floats.wgsl
//!include lib/dot_$SHAPE.wgsl
//!include lib/lanes.subgroup.wgsl
//!include lib/linear_led.wgsl
//!include lib/known_lora.wgsl
