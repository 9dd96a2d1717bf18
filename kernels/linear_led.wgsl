// linear_led - y = W x and, behind y, M x     (decode: one row)
//
//   x       read    cols f32                          grid   groups for W, then those for M: each R WG / LANES rows, or WG / 8
//   w       read    rows x cols                       bytes  W and M once; x comes from the cache
//   m       read    M, m_rows x cols f32
//                                                     needs  cols % 8 == 0
//   y       write   rows f32, then m_rows f32
//
// M is for the block after the next join: lib/ahead.wgsl.
//
// Reference: linear() in src/ops/ops_cpu.c, of both products. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!for SHAPE in f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!include lib/one_weight.wgsl
//!include lib/one_input.wgsl
//!include lib/floats.wgsl
//!include lib/dot_$SHAPE.wgsl
//!include lib/lanes.wgsl
//!include lib/linear_led.wgsl
//!include lib/known_bare.wgsl
