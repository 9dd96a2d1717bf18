// nibbles - units of 32 weights, two to a byte. Needs Run: lib/floats or lib/digits.
const CODES : bool = true; // products take activations in runs, see lib/held

// A unit of 32 weights in two runs of sixteen; a lane reads both with one vec4 of nibbles.
struct Acts32 {
    a : Run,
    b : Run,
}
