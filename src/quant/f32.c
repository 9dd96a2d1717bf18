/* f32.c - F32: a weight is its own four bytes, little-endian.
 *
 *      0       4       8
 *     +-------+-------+--
 *     | w0    | w1    | ...
 *     +-------+-------+--
 */
#include <string.h>

#include "quant/formats.h"

void f32_decode(const void *src, float *dst, size_t n)
{
    if (n) memcpy(dst, src, n * sizeof(float));
}

void f32_encode(const float *src, void *dst, size_t n)
{
    if (n) memcpy(dst, src, n * sizeof(float));
}
