/* q5_1.c - Q5_1: 32 weights in 24 bytes, 6 bits a weight. value = q * d + m, q in 0..31.
 *
 *      0     2     4       8                        24
 *     +-----+-----+-------+--------------------------+
 *     |  d  |  m  |  qh   |         qs[16]           |      d, m: half
 *     +-----+-----+-------+--------------------------+
 *                  bit j of qh = bit 4 of q[j]
 *                  qs[j] = low four bits of q[j] | those of q[j+16] << 4
 */
#include "base/half.h"
#include "base/simd.h"
#include "quant/formats.h"

BZ_CLONES void q5_1_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 32, b += 24, dst += 32) {
        float d = f16_to_f32(load_u16(b));
        float m = f16_to_f32(load_u16(b + 2));
        uint32_t h0 = load_u32(b + 4), h1 = h0 >> 16;
        const uint8_t *qs = b + 8;
        BZ_VECTOR
        for (int j = 0; j < 16; j++) {
            int q = (qs[j] & 15) | (int)((h0 >> j & 1) << 4);
            dst[j] = (float)q * d + m;
        }
        BZ_VECTOR
        for (int j = 0; j < 16; j++) {
            int q = qs[j] >> 4 | (int)((h1 >> j & 1) << 4);
            dst[j + 16] = (float)q * d + m;
        }
    }
}
