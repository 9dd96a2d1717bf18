/* iq4_nl.c - IQ4_NL: 32 weights in 18 bytes, 4.5 bits a weight. value = d * T[q].
 *
 *      0     2                        18
 *     +-----+--------------------------+
 *     |  d  |         qs[16]           |      d: half
 *     +-----+--------------------------+
 *            qs[j] = q[j] | q[j+16] << 4
 *
 *     T is uneven, denser around 0 where most weights are: see iq4_table.h.
 */
#include "base/half.h"
#include "base/simd.h"
#include "quant/formats.h"
#include "quant/iq4_table.h"

BZ_CLONES void iq4_nl_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 32, b += 18, dst += 32)
        iq4_scale(f16_to_f32(load_u16(b)), b + 2, dst);
}
