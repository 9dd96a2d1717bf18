/* str.h - text as pointer and length, and text that grows. Nothing here needs a NUL. */
#ifndef BEZEL_BASE_STR_H
#define BEZEL_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A borrowed run of bytes; its owner is named where it is handed out. */
struct str {
    const char *p;
    size_t n;
};

#define STR_ARG(s) (int)(s).n, (s).p /* for "%.*s" */

static inline struct str str_of(const char *z)
{
    return (struct str) { z, strlen(z) };
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_is(struct str a, const char *z)
{
    return str_eq(a, str_of(z));
}

static inline bool str_starts(struct str a, const char *z)
{
    size_t n = strlen(z);
    return a.n >= n && memcmp(a.p, z, n) == 0;
}

static inline bool str_ends(struct str a, const char *z)
{
    size_t n = strlen(z);
    return a.n >= n && memcmp(a.p + a.n - n, z, n) == 0;
}

/* Growing text. A failed allocation is remembered (`failed`) and later appends do nothing, so a
 * renderer checks once at its end. Zero is an empty buffer; always NUL-ended when data != NULL. */
struct buf {
    char *data;
    size_t n, cap;
    bool failed;
};

void buf_put(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *z);
void buf_putc(struct buf *b, char c);
void buf_put_str(struct buf *b, struct str s);
__attribute__((format(printf, 2, 3))) void buf_printf(struct buf *b, const char *fmt, ...);
void buf_free(struct buf *b);

static inline struct str buf_str(const struct buf *b)
{
    return (struct str) { b->data, b->n };
}

#endif
