// given_z - what adapters have made of x: n_tok x rank f32.
@group(0) @binding(3) var<storage, read> z : array<f32>;
