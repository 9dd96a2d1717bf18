/* wasm_seed.c - base/seed.h for the module, which gets its randomness from the host, once. */
#include "base/rng.h"
#include "base/seed.h"
#include "wasm/wasm.h"

static uint64_t given[2], n_calls;

EXPORT(void, bz_wasm_seed, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    given[0] = (uint64_t)a << 32 | b;
    given[1] = (uint64_t)c << 32 | d;
}

void seed_fresh(uint64_t out[2])
{
    out[0] = rng_at(given[0], ++n_calls);
    out[1] = rng_at(given[1], n_calls);
}
