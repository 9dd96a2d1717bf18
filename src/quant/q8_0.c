/* q8_0.c - Q8_0: 32 weights in 34 bytes, 8.5 bits a weight. value = q * d, q in -128..127.
 *
 *      0     2                                                34
 *     +-----+--------------------------------------------------+
 *     |  d  |                     qs[32]                       |      d: half, qs: i8
 *     +-----+--------------------------------------------------+
 *
 *     The encoder leaves -128 alone, so that a kernel may negate levels in eight bits.
 */
#include "quant/fit.h"
#include "quant/formats.h"

BZ_CLONES void q8_0_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += 32, b += 34, dst += 32) {
        float d = f16_to_f32(load_u16(b));
        for (int j = 0; j < 32; j++) dst[j] = (float)(int8_t)b[2 + j] * d;
    }
}

void q8_0_encode(const float *src, void *dst, size_t n)
{
    const float limit = 127 * FIT_HALF_MAX;
    static const struct fit_grid grid = { -127, 127, 118, 128.5f, 32, 1, true };
    uint8_t *b = dst;
    for (size_t i = 0; i < n; i += 32, b += 34) {
        float x[32];
        fit_clean(src + i, x, 32, -limit, limit);
        float d = fit_scale(x, 32, &grid), inv = fit_inverse(d);
        uint16_t h = f32_to_f16(d);
        memcpy(b, &h, 2);
        for (int j = 0; j < 32; j++) b[2 + j] = (uint8_t)(int)fit_level(x[j] * inv, -127, 127);
    }
}
