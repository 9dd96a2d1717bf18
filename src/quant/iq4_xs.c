/* iq4_xs.c - IQ4_XS: 256 weights in 136 bytes, 4.25 bits a weight. 8 groups of 32.
 * value = d * (sc - 32) * T[q], sc in 0..63 for each group, T in iq4_table.h.
 *
 *      0     2          4             8                                     136
 *     +-----+----------+-------------+--------------------------------------+
 *     |  d  | scales_h | scales_l[4] |      qs[128]: 16 bytes a group       |     d: half
 *     +-----+----------+-------------+--------------------------------------+
 *     scales_h: u16, bits 2g..2g+1 are the upper two bits of sc of group g
 *     scales_l[g/2]: the lower four bits, even groups in the low nibble
 *     qs[16g + j] = q[32g + j] | q[32g + j + 16] << 4
 */
#include "base/half.h"
#include "base/simd.h"
#include "quant/formats.h"
#include "quant/iq4_table.h"

BZ_CLONES void iq4_xs_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 256, b += 136, dst += 256) {
        float d = f16_to_f32(load_u16(b));
        int scales_h = load_u16(b + 2);
        for (int g = 0; g < 8; g++) {
            int low = b[4 + g / 2] >> (4 * (g % 2)) & 15;
            int high = scales_h >> (2 * g) & 3;
            iq4_scale(d * (float)((low | high << 4) - 32), b + 8 + 16 * g, dst + 32 * g);
        }
    }
}
