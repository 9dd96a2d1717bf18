/* q3_k.c - Q3_K: 256 weights in 110 bytes, 3.4375 bits a weight. 16 groups of 16.
 * value = d * (sc - 32) * q, q in -4..3, sc in 0..63 for each group.
 *
 *      0              32                             96            108   110
 *     +--------------+------------------------------+-------------+-----+
 *     |  hmask[32]   |            qs[64]            | scales[12]  |  d  |     d: half
 *     +--------------+------------------------------+-------------+-----+
 *
 *     q + 4 has three bits. The lower two are in qs exactly as in Q2_K; the upper one of weight
 *     32 k + l (k = 0..7, l = 0..31) is bit k of hmask[l].
 *
 *     sc of group g, six bits:      byte      bits 0..3     bits 4..7
 *                                   s[0..3]   low 4 of g    low 4 of g+8      g = 0..3
 *                                   s[4..7]   low 4 of g    low 4 of g+8      g = 4..7
 *                                   s[8..11]  upper 2 of g, g+4, g+8, g+12    g = 0..3
 */
#include "base/half.h"
#include "base/simd.h"
#include "quant/formats.h"

/* Weights as -4..3. Loops of 32 so that bytes stay bytes until the very end. */
BZ_INLINE void unpack(const uint8_t *restrict b, int8_t *restrict q)
{
    const uint8_t *hmask = b;
    for (int k = 0; k < 8; k++) {
        const uint8_t *qs = b + 32 + 32 * (k / 4);
        int8_t *o = q + 32 * k;
        int shift = 2 * (k % 4);
        for (int l = 0; l < 32; l++)
            o[l] = (int8_t)((qs[l] >> shift & 3) + ((hmask[l] >> k & 1) << 2) - 4);
    }
}

BZ_CLONES void q3_k_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 256, b += 110, dst += 256) {
        float d = f16_to_f32(load_u16(b + 108));
        const uint8_t *s = b + 96;
        int8_t q[256];
        unpack(b, q);
        for (int g = 0; g < 16; g++) {
            int low = s[g % 8] >> (g / 8 * 4) & 15;
            int high = s[8 + g % 4] >> (g / 4 * 2) & 3;
            float dl = d * (float)((low | high << 4) - 32);
            float *y = dst + 16 * g;
            const int8_t *o = q + 16 * g;
            BZ_VECTOR
            for (int l = 0; l < 16; l++) y[l] = dl * (float)o[l];
        }
    }
}
