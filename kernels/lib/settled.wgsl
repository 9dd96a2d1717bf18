// settled - sixteen activations, a run, in the form that products with codes read: settle() of lib/settle. A row of them is four
// planes, of a for all of its runs, then of b, c and d: lanes that read neighbouring runs read neighbouring vec4s.
struct Settled {
    a : vec4<u32>,
    b : vec4<u32>,
    c : vec4<u32>,
    d : vec4<u32>,
}
