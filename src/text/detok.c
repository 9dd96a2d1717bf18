/* detok.c - token ids back to text, whole code points only.
 *
 * It owns how each type of token shows: normal text with its spaces restored, byte tokens as bytes,
 * user-defined text as it is, control text only when asked for.
 */
#include "text/tokenizer_impl.h"

static void put_replacement(struct buf *out)
{
    buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD */
}

/* Take the first k bytes out of what is held. */
static void drop(struct detok *d, unsigned k)
{
    d->n_held -= k;
    memmove(d->held, d->held + k, d->n_held);
}

/* Whether the held bytes may still grow into a code point. */
static bool may_grow(const struct detok *d)
{
    if (d->n_held >= utf8_len(d->held[0])) return false;
    for (unsigned i = 1; i < d->n_held; i++)
        if ((d->held[i] & 0xc0) != 0x80) return false;
    return true;
}

/* Every byte goes through here, so a stream gives the same text however it is cut. */
static void put_byte(struct detok *d, unsigned char byte, struct buf *out)
{
    d->held[d->n_held++] = byte;
    while (d->n_held && !may_grow(d)) {
        size_t used;
        uint32_t cp = utf8_decode((const char *)d->held, d->n_held, &used);
        if (used == 1 && cp == 0xfffd)
            put_replacement(out); /* the real U+FFFD is three bytes long */
        else buf_put(out, d->held, used);
        drop(d, (unsigned)used);
    }
}

static void put_bytes(struct detok *d, struct str s, struct buf *out)
{
    size_t n_ascii = 0;
    if (d->n_held == 0) {
        while (n_ascii < s.n && (unsigned char)s.p[n_ascii] < 0x80) n_ascii++;
        buf_put(out, s.p, n_ascii);
    }
    for (size_t i = n_ascii; i < s.n; i++) put_byte(d, (unsigned char)s.p[i], out);
}

/* A normal token: U+2581 stands for the space. */
static void put_spaced(struct detok *d, struct str s, struct buf *out)
{
    while (s.n) {
        if (str_starts(s, "\xe2\x96\x81")) {
            put_byte(d, ' ', out);
            s = (struct str) { s.p + 3, s.n - 3 };
            continue;
        }
        size_t n = 1;
        while (n < s.n && s.p[n] != '\xe2') n++;
        put_bytes(d, (struct str) { s.p, n }, out);
        s = (struct str) { s.p + n, s.n - n };
    }
}

void detok_feed(struct detok *d, const struct tokenizer *t, int32_t id, bool specials,
                struct buf *out)
{
    struct str text = tokenizer_text(t, id);
    switch (tokenizer_type(t, id)) {
    case TOKEN_NORMAL: put_spaced(d, text, out); break;
    case TOKEN_USER_DEFINED: put_bytes(d, text, out); break;
    case TOKEN_BYTE: put_byte(d, (unsigned char)tokenizer_byte_value(text), out); break;
    case TOKEN_CONTROL:
    case TOKEN_UNKNOWN:
        if (specials) put_bytes(d, text, out);
        break;
    case TOKEN_UNUSED: break;
    }
}

void detok_end(struct detok *d, struct buf *out)
{
    for (; d->n_held; drop(d, 1)) put_replacement(out);
}
