// settled - four vec4s of activations in the form that a shape's products read: settle() of lib/acts or lib/dot8.
struct Settled {
    a : vec4<u32>,
    b : vec4<u32>,
    c : vec4<u32>,
    d : vec4<u32>,
}
