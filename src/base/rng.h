/* rng.h - random numbers that are the same on every machine.
 *
 * rng_at(seed, i) is the i-th number of a stream without stepping through the others: the sampler
 * draws token i of a session with it, so a replayed or branched session draws the same way, and a
 * GPU can draw it too.
 */
#ifndef BEZEL_BASE_RNG_H
#define BEZEL_BASE_RNG_H

#include <stdint.h>

/* splitmix64's finaliser: every input bit reaches every output bit. */
static inline uint64_t rng_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t rng_at(uint64_t seed, uint64_t i)
{
    return rng_mix(rng_mix(seed + 0x9e3779b97f4a7c15u) + (i + 1) * 0x9e3779b97f4a7c15u);
}

/* The same idea in 32 bits (lowbias32), for what a GPU must draw too. */
static inline uint32_t rng_mix32(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    return rng_mix(r->state);
}

/* In [0, 1), from the upper 24 bits: every value is exact in f32. */
static inline float rng_unit(uint64_t bits)
{
    return (float)(bits >> 40) * 0x1p-24f;
}

/* In [0, n), n > 0; the bias of the multiply is below n / 2^32. */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
    return (uint32_t)(((rng_next(r) >> 32) * n) >> 32);
}

#endif
