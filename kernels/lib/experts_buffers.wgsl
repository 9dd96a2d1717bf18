// experts_buffers - what products of tiles of experts_plan are bound to.
@group(0) @binding(0) var<uniform> p : Params;
//!bind x read array<vec4<f32>>
//!bind plan read array<u32>
//!bind w read array<vec4<u32>>
//!bind z read array<f32>
//!bind b read array<f32>
//!bind y update array<f32>
