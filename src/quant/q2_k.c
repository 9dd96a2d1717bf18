/* q2_k.c - Q2_K: 256 weights in 84 bytes, 2.625 bits a weight. 16 groups of 16.
 * value = d * sc * q - dmin * mn, q in 0..3, sc and mn in 0..15 for each group.
 *
 *      0             16                                80     82     84
 *     +-------------+---------------------------------+------+------+
 *     | scales[16]  |             qs[64]              |  d   | dmin |     d, dmin: half
 *     +-------------+---------------------------------+------+------+
 *     scales[g] = sc | mn << 4
 *
 *     Each half of 128 weights has 32 bytes of qs; byte l holds the weights l, l+32, l+64, l+96 of
 *     that half, two bits each from the lowest up. Groups are in the order of the weights, so bits
 *     2k..2k+1 of the bytes 0..15 are group 2k of the half and those of 16..31 are group 2k+1.
 */
#include "base/half.h"
#include "base/simd.h"
#include "quant/formats.h"

BZ_CLONES void q2_k_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 256, b += 84, dst += 256) {
        float d = f16_to_f32(load_u16(b + 80));
        float dmin = f16_to_f32(load_u16(b + 82));
        for (int g = 0; g < 16; g++) {
            const uint8_t *qs = b + 16 + 32 * (g / 8) + 16 * (g % 2);
            int shift = 2 * (g % 8 / 2);
            float *y = dst + 16 * g;
            float dl = d * (float)(b[g] & 15), ml = dmin * (float)(b[g] >> 4);
            BZ_VECTOR
            for (int l = 0; l < 16; l++) y[l] = dl * (float)(qs[l] >> shift & 3) - ml;
        }
    }
}
