/* quote.h - a name from a file or a person, made fit for a sentence: short, and without bytes that
 * a terminal would obey. */
#ifndef BEZEL_IO_QUOTE_H
#define BEZEL_IO_QUOTE_H

#include "base/str.h"

struct quoted {
    char z[96];
};

static inline struct quoted quote(struct str s)
{
    struct quoted q = { "" };
    size_t n = 0;
    for (; n < s.n && n < 92; n++) q.z[n] = s.p[n] >= ' ' && s.p[n] <= '~' ? s.p[n] : '?';
    if (n < s.n) memcpy(q.z + n, "...", 4);
    return q;
}

#endif
