/* half.h - the two 16-bit floats, both rounded to nearest even. */
#ifndef BEZEL_BASE_HALF_H
#define BEZEL_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* IEEE half: 1 sign, 5 exponent, 10 fraction. Denormals, infinities and NaN included. */
static inline float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t rest = (uint32_t)(h & 0x7fff) << 13; /* exponent and fraction at f32's place */
    /* Multiplying by 2^112 moves the exponent bias from 15 to 127 and normalises denormals.
     * Infinities and NaN take no early return, so that loops over this function vectorise. */
    uint32_t u = f32_bits(f32_from_bits(rest) * 0x1p112f);
    u |= rest >= 0x0f800000 ? 0x7f800000 : 0;
    return f32_from_bits(u | sign);
}

static inline uint16_t f32_to_f16(float f)
{
    uint32_t u = f32_bits(f);
    uint16_t sign = (uint16_t)((u >> 16) & 0x8000);
    u &= 0x7fffffff;
    if (u > 0x7f800000) return (uint16_t)(sign | 0x7e00);  /* NaN, quieted */
    if (u >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* rounds past 65504 */
    if (u < 0x38800000) {                                  /* a half denormal, or zero */
        /* Adding 0.5 leaves the value in units of 2^-24 in the low bits, rounded to even. */
        float shifted = f32_from_bits(u) + 0.5f;
        return (uint16_t)(sign | (f32_bits(shifted) - 0x3f000000));
    }
    uint32_t odd = (u >> 13) & 1;
    return (uint16_t)(sign | ((u - 0x38000000 + 0xfff + odd) >> 13));
}

/* bfloat16: the upper half of an f32. */
static inline float bf16_to_f32(uint16_t h)
{
    return f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t f32_to_bf16(float f)
{
    uint32_t u = f32_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)((u >> 16) | 64); /* NaN, quieted */
    return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

/* Little-endian reads that do not care about alignment. */
static inline uint16_t load_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

static inline uint32_t load_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

#endif
