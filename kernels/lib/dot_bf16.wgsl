// dot_bf16 - a lane's unit is one vec4.
//!include lib/shape_bf16.wgsl
//!include lib/dot8.wgsl
