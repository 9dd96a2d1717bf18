// experts_buffers - what products of tiles of experts_plan are bound to.
@group(0) @binding(0) var<uniform> p : Params;
@group(0) @binding(1) var<storage, read> x : array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> plan : array<u32>;
@group(0) @binding(3) var<storage, read> w : array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> z : array<f32>;
@group(0) @binding(5) var<storage, read> b : array<f32>;
@group(0) @binding(6) var<storage, read_write> y : array<f32>;
