/* utf8.h - code points in and out of bytes. */
#ifndef BEZEL_BASE_UTF8_H
#define BEZEL_BASE_UTF8_H

#include <stdbool.h>
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

/* Would a terminal obey it? Some past ASCII do too: U+009B begins a command as ESC [ does. */
static inline bool utf8_is_control(uint32_t cp)
{
    return cp < ' ' || (cp >= 0x7f && cp <= 0x9f);
}

/* Write cp (a scalar value) to out[4]; returns its length. */
size_t utf8_encode(uint32_t cp, char *out);

#endif
