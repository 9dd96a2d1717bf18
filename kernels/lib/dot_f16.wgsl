// dot_f16 - a lane's unit is one vec4.
//!include lib/shape_f16.wgsl
//!include lib/dot8.wgsl
