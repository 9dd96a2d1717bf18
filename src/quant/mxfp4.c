/* mxfp4.c - MXFP4: 32 weights in 17 bytes, 4.25 bits a weight. value = F[q] * 2^(e - 128).
 *
 *      0     1                        17
 *     +-----+--------------------------+
 *     |  e  |         qs[16]           |      e: exponent of the block's scale, biased by 127
 *     +-----+--------------------------+
 *            qs[j] = q[j] | q[j+16] << 4
 *
 *     q is a float of 1 sign, 2 exponent and 1 fraction bit: 0, 0.5, 1, 1.5, 2, 3, 4, 6. F holds
 *     these doubled, so that they are whole, and the scale is halved in return. The OCP standard
 *     calls e = 255 NaN; like ggml, this reads it as one more power of two.
 */
#include "base/half.h"
#include "base/simd.h"
#include "quant/formats.h"

static const float table[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

/* 2^(e - 128). The two smallest are below the normal range of f32. */
BZ_INLINE float half_scale(uint8_t e)
{
    return f32_from_bits(e < 2 ? (uint32_t)0x00200000 << e : (uint32_t)(e - 1) << 23);
}

BZ_CLONES void mxfp4_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 32, b += 17, dst += 32) {
        float d = half_scale(b[0]);
        const uint8_t *qs = b + 1;
        for (int j = 0; j < 16; j++) {
            dst[j] = table[qs[j] & 15] * d;
            dst[j + 16] = table[qs[j] >> 4] * d;
        }
    }
}
