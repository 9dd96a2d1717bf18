/* q5_k.c - Q5_K: 256 weights in 176 bytes, 5.5 bits a weight. 8 groups of 32.
 * value = d * sc * q - dmin * mn, q in 0..31, sc and mn in 0..63 for each group.
 *
 *      0     2      4             16          48                              176
 *     +-----+------+-------------+-----------+--------------------------------+
 *     |  d  | dmin | scales[12]  |  qh[32]   |            qs[128]             |   d, dmin: half
 *     +-----+------+-------------+-----------+--------------------------------+
 *     scales: the pairs (sc, mn), six bits each, packed as affine.h draws it
 *     qs[32p + l] = low four bits of group 2p, weight l | those of group 2p + 1 << 4    p = 0..3
 *     bit g of qh[l] = bit 4 of group g, weight l
 */
#include "base/half.h"
#include "quant/affine.h"
#include "quant/formats.h"

BZ_CLONES void q5_k_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 256, b += 176, dst += 256) {
        float d = f16_to_f32(load_u16(b)), dmin = f16_to_f32(load_u16(b + 2));
        const uint8_t *qh = b + 16;
        uint8_t sc[8], mn[8];
        affine_unpack(b + 4, sc, mn);
        for (int p = 0; p < 4; p++) {
            const uint8_t *qs = b + 48 + 32 * p;
            float *y = dst + 64 * p;
            float d0 = d * (float)sc[2 * p], m0 = dmin * (float)mn[2 * p];
            float d1 = d * (float)sc[2 * p + 1], m1 = dmin * (float)mn[2 * p + 1];
            for (int l = 0; l < 32; l++) {
                int q = (qs[l] & 15) | (qh[l] >> (2 * p) & 1) << 4;
                y[l] = d0 * (float)q - m0;
            }
            for (int l = 0; l < 32; l++) {
                int q = qs[l] >> 4 | (qh[l] >> (2 * p + 1) & 1) << 4;
                y[l + 32] = d1 * (float)q - m1;
            }
        }
    }
}

void q5_k_encode(const float *src, void *dst, size_t n)
{
    uint8_t *b = dst;
    for (size_t i = 0; i < n; i += 256, b += 176) {
        struct affine a;
        affine_fit(src + i, 31, &a);
        uint16_t d = f32_to_f16(a.d), dmin = f32_to_f16(a.dmin);
        memcpy(b, &d, 2);
        memcpy(b + 2, &dmin, 2);
        affine_pack(&a, b + 4);
        memset(b + 16, 0, 32);
        for (int p = 0; p < 4; p++) {
            const uint8_t *q = a.q + 64 * p;
            uint8_t *qh = b + 16, *qs = b + 48 + 32 * p;
            for (int l = 0; l < 32; l++) {
                qs[l] = (uint8_t)((q[l] & 15) | (q[l + 32] & 15) << 4);
                qh[l] |= (uint8_t)(q[l] >> 4 << (2 * p) | q[l + 32] >> 4 << (2 * p + 1));
            }
        }
    }
}
