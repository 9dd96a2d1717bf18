/* q4_1.c - Q4_1: 32 weights in 20 bytes, 5 bits a weight. value = q * d + m, q in 0..15.
 *
 *      0     2     4                        20
 *     +-----+-----+--------------------------+
 *     |  d  |  m  |         qs[16]           |      d, m: half
 *     +-----+-----+--------------------------+
 *                  qs[j] = q[j] | q[j+16] << 4
 */
#include "base/half.h"
#include "base/simd.h"
#include "quant/formats.h"

BZ_CLONES void q4_1_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 32, b += 20, dst += 32) {
        float d = f16_to_f32(load_u16(b));
        float m = f16_to_f32(load_u16(b + 2));
        const uint8_t *qs = b + 4;
        BZ_VECTOR
        for (int j = 0; j < 16; j++) dst[j] = (float)(qs[j] & 15) * d + m;
        BZ_VECTOR
        for (int j = 0; j < 16; j++) dst[j + 16] = (float)(qs[j] >> 4) * d + m;
    }
}
