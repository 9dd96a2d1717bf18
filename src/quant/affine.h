/* affine.h - the super-block that Q4_K and Q5_K share: 8 groups of 32 weights,
 * value = d * sc * q - dmin * mn. Private to quant/.
 *
 * The eight pairs of six-bit numbers lie in twelve bytes:
 *
 *     byte      bits 0..5     bits 6..7
 *     0..3      sc[0..3]      upper two bits of sc[4..7]
 *     4..7      mn[0..3]      upper two bits of mn[4..7]
 *
 *     byte      bits 0..3               bits 4..7
 *     8..11     low four of sc[4..7]    low four of mn[4..7]
 */
#ifndef BEZEL_QUANT_AFFINE_H
#define BEZEL_QUANT_AFFINE_H

#include <stdint.h>

#include "base/simd.h"

struct affine {
    float d, dmin; /* exact halves */
    uint8_t sc[8], mn[8];
    uint8_t q[256];
};

/* The block that decodes nearest to the 256 weights of src, with levels 0..q_max (15 or 31). */
void affine_fit(const float *src, int q_max, struct affine *out);

/* The twelve bytes of a and back. */
void affine_pack(const struct affine *a, uint8_t *s);

BZ_INLINE void affine_unpack(const uint8_t *s, uint8_t *sc, uint8_t *mn)
{
    for (int j = 0; j < 4; j++) {
        sc[j] = s[j] & 63;
        mn[j] = s[j + 4] & 63;
        sc[j + 4] = (uint8_t)((s[j + 8] & 15) | s[j] >> 6 << 4);
        mn[j + 4] = (uint8_t)(s[j + 8] >> 4 | s[j + 4] >> 6 << 4);
    }
}

#endif
