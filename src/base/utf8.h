/* utf8.h - code points in and out of bytes. */
#ifndef BEZEL_BASE_UTF8_H
#define BEZEL_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the sequence that this lead byte announces: 1..4, or 0 for a byte that cannot lead. */
static inline size_t utf8_len(unsigned char lead)
{
    if (lead < 0x80) return 1;
    if (lead < 0xc2) return 0;
    if (lead < 0xe0) return 2;
    if (lead < 0xf0) return 3;
    if (lead < 0xf5) return 4;
    return 0;
}

/* Strict decode at p[0..n): the code point and its length in *used. Malformed (overlong, surrogate,
 * past U+10FFFF, cut short): U+FFFD and *used = 1. n > 0. */
uint32_t utf8_decode(const char *p, size_t n, size_t *used);

/* Write cp (a scalar value) to out[4]; returns its length. */
size_t utf8_encode(uint32_t cp, char *out);

#endif
