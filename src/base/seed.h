/* seed.h - numbers that a stranger cannot guess, from the host: the keys of hash tables. */
#ifndef BEZEL_BASE_SEED_H
#define BEZEL_BASE_SEED_H

#include <stdint.h>

/* Other numbers with every call. (seed.c; in the wasm module wasm/wasm_seed.c) */
void seed_fresh(uint64_t out[2]);

#endif
