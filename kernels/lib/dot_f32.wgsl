// dot_f32 - a lane's unit is one vec4 pair.
//!include lib/shape_f32.wgsl
//!include lib/dot8.wgsl
