/* f16.c - F16: one IEEE half for each weight.
 *
 *      15  14     10  9          0
 *     +---+----------+------------+
 *     | s | exponent |  fraction  |     two bytes, little-endian
 *     +---+----------+------------+
 */
#include "base/half.h"
#include "base/simd.h"
#include "quant/formats.h"

BZ_CLONES void f16_decode(const void *restrict src, float *restrict dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++) dst[i] = f16_to_f32(load_u16(p + 2 * i));
}

/* A finite weight beyond 65504 saturates: infinity would be no nearer and would poison every sum
 * that it enters. */
BZ_CLONES void f16_encode(const float *restrict src, void *restrict dst, size_t n)
{
    uint8_t *p = dst;
    for (size_t i = 0; i < n; i++) {
        uint16_t h = f32_to_f16(src[i]);
        uint32_t finite = (f32_bits(src[i]) & 0x7fffffff) < 0x7f800000;
        if (finite && (h & 0x7fff) == 0x7c00) h--;
        memcpy(p + 2 * i, &h, 2);
    }
}
