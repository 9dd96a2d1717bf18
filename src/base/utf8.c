/* utf8.c - strict UTF-8: one decoder that never reads past its input, one encoder. */
#include "base/utf8.h"

#include <assert.h>

#define REPLACEMENT 0xfffdu

uint32_t utf8_decode(const char *p, size_t n, size_t *used)
{
    assert(n > 0);
    const unsigned char *b = (const unsigned char *)p;
    size_t len = utf8_len(b[0]);
    *used = 1;
    if (len == 1) return b[0];
    if (len == 0 || len > n) return REPLACEMENT;

    uint32_t cp = b[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((b[i] & 0xc0) != 0x80) return REPLACEMENT;
        cp = cp << 6 | (b[i] & 0x3fu);
    }
    /* Leads c0 and c1 are already out, so only these lengths can still be overlong. */
    if ((len == 3 && cp < 0x800) || (len == 4 && cp < 0x10000)) return REPLACEMENT;
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) return REPLACEMENT;
    *used = len;
    return cp;
}

size_t utf8_encode(uint32_t cp, char *out)
{
    unsigned char *b = (unsigned char *)out;
    if (cp < 0x80) {
        b[0] = (unsigned char)cp;
        return 1;
    }
    size_t len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        b[i] = (unsigned char)(0x80 | (cp & 0x3f));
        cp >>= 6;
    }
    static const unsigned char lead[5] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    b[0] = (unsigned char)(lead[len] | cp);
    return len;
}
