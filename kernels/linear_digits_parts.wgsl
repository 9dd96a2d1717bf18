// linear_digits_parts - y = W x + s B z, where z is the sum of parts     (decode: one row)
//
//   x   read   cols, settled          grid   a workgroup per R WG / LANES rows of W
//   w   read   rows x cols            bytes  W and B once; x and z come from the cache
//   z   read   from vec4 z_at on n_parts x rank f32
//                                     needs  cols % 16 == 0; rank % 4 == 0; rank <= WG / 4
//   b   read   see lib/lora.wgsl
//   y   write  rows f32
//
// As linear_digits where the workgroups of the dispatch before have each made a part of z = A x.
//
// Reference: linear() in src/ops/ops_cpu.c. Tolerance 1e-10 nmse: f32 sums here, f64 there.

//!axis format f32 f16 bf16 q4_0 q5_0 q8_0 q4_k q5_k q6_k q8_a
//!axis tier plain subgroup
//!without format in f32 f16 bf16
//!include lib/one_weight.wgsl
//!include lib/one_settled.wgsl
//!include lib/digits.wgsl
//!include lib/dot_$format.wgsl
//!include lib/lanes.wgsl
//!include lib/linear_digits_parts.wgsl
