/* ops_cpu_vec.h - vectors of the fast CPU ops: as wide as the instruction set allows, in one
 * source.
 *
 * The types are the compiler's own (vector_size). Vectors are passed by address: how a wide one is
 * passed by value depends on the instruction set.
 */
#ifndef BEZEL_OPS_OPS_CPU_VEC_H
#define BEZEL_OPS_OPS_CPU_VEC_H

#include <stdint.h>

#include "base/simd.h"

#if defined(__wasm_simd128__)
enum { LANES = 4 };
#else
enum { LANES = 8 };
#endif

typedef float vf __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef float vf4 __attribute__((vector_size(16), aligned(4)));

BZ_INLINE float sum4(const vf4 *p)
{
    vf4 v = *p;
    return (v[0] + v[2]) + (v[1] + v[3]);
}

BZ_INLINE float sum_lanes(const vf *p)
{
    const vf4 *part = (const vf4 *)p;
    vf4 v = part[0];
    for (int i = 1; i < LANES / 4; i++) v += part[i];
    return sum4(&v);
}

/* In place: x where keep, else the number. */
BZ_INLINE void keep_lanes(vf *x, const vi *keep, float other)
{
    vf all = other - (vf) { 0 };
    *x = (vf)(((vi)*x & *keep) | ((vi)all & ~*keep));
}

/* In place: e^x to within an ulp or two; below -87 and above 88 the value there.
 *
 *     e^x = 2^n e^r,   n = x / ln 2 rounded,   |r| <= ln 2 / 2
 *
 * Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits; e^r is the polynomial
 * of the Cephes library. ln 2 is in two parts, so that n times the first is exact. */
BZ_INLINE void exp_lanes(vf *x)
{
    const float magic = 0x1.8p23f;
    vi inside = *x > -87.0f;
    keep_lanes(x, &inside, -87.0f);
    inside = *x < 88.0f;
    keep_lanes(x, &inside, 88.0f);
    vf shifted = *x * 1.44269504088896341f + magic, n = shifted - magic;
    vf r = *x - n * 0.693359375f - n * -2.12194440e-4f;
    vf p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    *x = p * (vf)(((vi)shifted << 23) + 0x3f800000);
}

#endif
