/* q4_k.c - Q4_K: 256 weights in 144 bytes, 4.5 bits a weight. 8 groups of 32.
 * value = d * sc * q - dmin * mn, q in 0..15, sc and mn in 0..63 for each group.
 *
 *      0     2      4             16                                    144
 *     +-----+------+-------------+--------------------------------------+
 *     |  d  | dmin | scales[12]  |               qs[128]                |     d, dmin: half
 *     +-----+------+-------------+--------------------------------------+
 *     scales: the pairs (sc, mn), six bits each, packed as affine.h draws it
 *     qs[32p + l] = q of group 2p, weight l | q of group 2p + 1, weight l << 4      p = 0..3
 */
#include "base/half.h"
#include "quant/affine.h"
#include "quant/formats.h"

BZ_CLONES void q4_k_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 256, b += 144, dst += 256) {
        float d = f16_to_f32(load_u16(b)), dmin = f16_to_f32(load_u16(b + 2));
        uint8_t sc[8], mn[8];
        affine_unpack(b + 4, sc, mn);
        for (int p = 0; p < 4; p++) {
            const uint8_t *qs = b + 16 + 32 * p;
            float *y = dst + 64 * p;
            float d0 = d * (float)sc[2 * p], m0 = dmin * (float)mn[2 * p];
            float d1 = d * (float)sc[2 * p + 1], m1 = dmin * (float)mn[2 * p + 1];
            for (int l = 0; l < 32; l++) y[l] = d0 * (float)(qs[l] & 15) - m0;
            for (int l = 0; l < 32; l++) y[l + 32] = d1 * (float)(qs[l] >> 4) - m1;
        }
    }
}

void q4_k_encode(const float *src, void *dst, size_t n)
{
    uint8_t *b = dst;
    for (size_t i = 0; i < n; i += 256, b += 144) {
        struct affine a;
        affine_fit(src + i, 15, &a);
        uint16_t d = f32_to_f16(a.d), dmin = f32_to_f16(a.dmin);
        memcpy(b, &d, 2);
        memcpy(b + 2, &dmin, 2);
        affine_pack(&a, b + 4);
        for (int p = 0; p < 4; p++) {
            const uint8_t *q = a.q + 64 * p;
            uint8_t *qs = b + 16 + 32 * p;
            for (int l = 0; l < 32; l++) qs[l] = (uint8_t)(q[l] | q[l + 32] << 4);
        }
    }
}
