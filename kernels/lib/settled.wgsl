// settled - sixteen activations in the form that products with codes read: settle() of lib/settle.
struct Settled {
    a : vec4<u32>,
    b : vec4<u32>,
    c : vec4<u32>,
    d : vec4<u32>,
}
