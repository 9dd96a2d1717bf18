/* q4_0.c - Q4_0: 32 weights in 18 bytes, 4.5 bits a weight. value = (q - 8) * d, q in 0..15.
 *
 *      0     2                        18
 *     +-----+--------------------------+
 *     |  d  |         qs[16]           |      d: half
 *     +-----+--------------------------+
 *            qs[j] = q[j] | q[j+16] << 4
 */
#include "quant/fit.h"
#include "quant/formats.h"

BZ_CLONES void q4_0_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 32, b += 18, dst += 32) {
        float d = f16_to_f32(load_u16(b));
        const uint8_t *qs = b + 2;
        BZ_VECTOR
        for (int j = 0; j < 16; j++) dst[j] = (float)((qs[j] & 15) - 8) * d;
        BZ_VECTOR
        for (int j = 0; j < 16; j++) dst[j + 16] = (float)((qs[j] >> 4) - 8) * d;
    }
}

void q4_0_encode(const float *src, void *dst, size_t n)
{
    const float limit = 8 * FIT_HALF_MAX;
    static const struct fit_grid grid = { -8, 7, 6, 9, 16, 2, true };
    uint8_t *b = dst;
    for (size_t i = 0; i < n; i += 32, b += 18) {
        float x[32];
        fit_clean(src + i, x, 32, -limit, limit);
        float d = fit_scale(x, 32, &grid), inv = fit_inverse(d);
        uint16_t h = f32_to_f16(d);
        memcpy(b, &h, 2);
        for (int j = 0; j < 16; j++) {
            int lo = (int)fit_level(x[j] * inv, -8, 7) + 8;
            int hi = (int)fit_level(x[j + 16] * inv, -8, 7) + 8;
            b[2 + j] = (uint8_t)(lo | hi << 4);
        }
    }
}
