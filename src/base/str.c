#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

static bool reserve(struct buf *b, size_t extra)
{
    if (b->failed) return false;
    if (b->cap - b->n > extra) return true; /* room for the NUL too */
    size_t cap = b->cap ? b->cap : 64;
    while (cap - b->n <= extra && cap < SIZE_MAX / 2) cap *= 2;
    char *p = cap - b->n > extra ? mem_grow(b->data, cap, 1) : NULL;
    if (!p) {
        b->failed = true;
        return false;
    }
    b->data = p;
    b->cap = cap;
    return true;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
    if (!reserve(b, n)) return;
    if (n) memcpy(b->data + b->n, p, n);
    b->n += n;
    b->data[b->n] = 0;
}

void buf_puts(struct buf *b, const char *z)
{
    buf_put(b, z, strlen(z));
}

void buf_putc(struct buf *b, char c)
{
    buf_put(b, &c, 1);
}

void buf_put_str(struct buf *b, struct str s)
{
    buf_put(b, s.p, s.n);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && reserve(b, (size_t)n)) {
        vsnprintf(b->data + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    } else {
        b->failed = true;
    }
    va_end(again);
}

void buf_free(struct buf *b)
{
    mem_free(b->data);
    *b = (struct buf) { 0 };
}
