// bezel - Gemma 4 in a browser tab, in Node and in Deno.
export { BezelError, type ErrorKind } from './wasm.js';
