/* q5_0.c - Q5_0: 32 weights in 22 bytes, 5.5 bits a weight. value = (q - 16) * d, q in 0..31.
 *
 *      0     2       6                        22
 *     +-----+-------+--------------------------+
 *     |  d  |  qh   |         qs[16]           |      d: half
 *     +-----+-------+--------------------------+
 *            bit j of qh = bit 4 of q[j]
 *            qs[j] = low four bits of q[j] | those of q[j+16] << 4
 */
#include "quant/fit.h"
#include "quant/formats.h"

BZ_CLONES void q5_0_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 32, b += 22, dst += 32) {
        float d = f16_to_f32(load_u16(b));
        uint32_t h0 = load_u32(b + 2), h1 = h0 >> 16;
        const uint8_t *qs = b + 6;
        BZ_VECTOR
        for (int j = 0; j < 16; j++) {
            int q = (qs[j] & 15) | (int)((h0 >> j & 1) << 4);
            dst[j] = (float)(q - 16) * d;
        }
        BZ_VECTOR
        for (int j = 0; j < 16; j++) {
            int q = qs[j] >> 4 | (int)((h1 >> j & 1) << 4);
            dst[j + 16] = (float)(q - 16) * d;
        }
    }
}

void q5_0_encode(const float *src, void *dst, size_t n)
{
    const float limit = 16 * FIT_HALF_MAX;
    static const struct fit_grid grid = { -16, 15, 13, 17, 16, 2, true };
    uint8_t *b = dst;
    for (size_t i = 0; i < n; i += 32, b += 22) {
        float x[32];
        fit_clean(src + i, x, 32, -limit, limit);
        float d = fit_scale(x, 32, &grid), inv = fit_inverse(d);
        uint16_t h = f32_to_f16(d);
        uint32_t qh = 0;
        for (int j = 0; j < 16; j++) {
            unsigned lo = (unsigned)((int)fit_level(x[j] * inv, -16, 15) + 16);
            unsigned hi = (unsigned)((int)fit_level(x[j + 16] * inv, -16, 15) + 16);
            b[6 + j] = (uint8_t)((lo & 15) | (hi & 15) << 4);
            qh |= (uint32_t)(lo >> 4) << j | (uint32_t)(hi >> 4) << (j + 16);
        }
        memcpy(b, &h, 2);
        memcpy(b + 2, &qh, 4);
    }
}
