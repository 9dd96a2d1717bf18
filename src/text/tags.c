/* tags.c - tags as bytes, and what calls hold between them. */
#include "text/tags.h"

#include "base/json.h"

/* ---- tags ---- */

static const enum special tags[BYTE_END - BYTE_FIRST] = {
    [BYTE_CALL - BYTE_FIRST] = SPECIAL_CALL,
    [BYTE_CALL_END - BYTE_FIRST] = SPECIAL_CALL_END,
    [BYTE_QUOTE - BYTE_FIRST] = SPECIAL_QUOTE,
    [BYTE_CHANNEL - BYTE_FIRST] = SPECIAL_CHANNEL,
    [BYTE_CHANNEL_END - BYTE_FIRST] = SPECIAL_CHANNEL_END,
    [BYTE_RESPONSE - BYTE_FIRST] = SPECIAL_RESPONSE,
};

unsigned tag_byte(const struct tokenizer *t, int32_t id)
{
    if (!tokenizer_is_special(t, id)) return 0;
    for (unsigned byte = BYTE_FIRST; byte < BYTE_END; byte++)
        if (tokenizer_special(t, tags[byte - BYTE_FIRST]) == id) return byte;
    return 0;
}

enum special tag_special(unsigned byte)
{
    return tags[byte - BYTE_FIRST];
}

unsigned tag_at_end(struct str text)
{
    for (unsigned byte = BYTE_FIRST; byte < BYTE_END; byte++) {
        struct str tag = special_text(tag_special(byte));
        if (text.n >= tag.n && memcmp(text.p + text.n - tag.n, tag.p, tag.n) == 0) return byte;
    }
    return 0;
}

/* ---- values ---- */

enum { MAX_KNOWN = 256 };

static bool in_object(const struct call_json *c)
{
    uint32_t i = c->depth - 1;
    return c->depth > 0 && i < MAX_KNOWN && c->is_object[i / 32] >> i % 32 & 1;
}

static void open_bracket(struct call_json *c, bool is_object)
{
    uint32_t i = c->depth++;
    if (i < MAX_KNOWN) {
        c->is_object[i / 32] &= ~(1u << i % 32);
        c->is_object[i / 32] |= (uint32_t)is_object << i % 32;
    }
    if (is_object) c->state = CALL_KEY_START;
}

/* A piece of a string's inside, escaped. */
static void put_inside(struct buf *out, struct str text)
{
    size_t before = out->n;
    json_put_string(out, text);
    if (out->failed) return;
    out->n -= 2;
    memmove(out->data + before, out->data + before + 1, out->n - before);
    out->data[out->n] = 0;
}

/* Up to a byte that ends it, or all. */
static size_t read_inside(struct str text, unsigned char end, struct buf *out)
{
    const char *stop = memchr(text.p, end, text.n);
    size_t n = stop ? (size_t)(stop - text.p) : text.n;
    put_inside(out, (struct str) { text.p, n });
    return n;
}

/* One byte of a value, or a tag. */
static void read_value(struct call_json *c, unsigned char byte, struct buf *out)
{
    if (byte == BYTE_QUOTE) buf_putc(out, '"');
    else if (byte >= BYTE_FIRST) buf_put_str(out, special_text(tag_special(byte)));
    else buf_putc(out, (char)byte);
    if (byte == BYTE_QUOTE) c->state = CALL_STRING;
    else if (byte == '{' || byte == '[') open_bracket(c, byte == '{');
    else if ((byte == '}' || byte == ']') && c->depth) c->depth--;
    else if (byte == ',' && in_object(c)) c->state = CALL_KEY_START;
}

/* A key's first byte: says whether it was read. */
static bool begin_key(struct call_json *c, unsigned char byte, struct buf *out)
{
    c->state = byte == '}' ? CALL_VALUE : byte == BYTE_QUOTE ? CALL_QUOTED_KEY : CALL_KEY;
    if (byte != '}') buf_putc(out, '"');
    return byte == BYTE_QUOTE;
}

size_t call_json_put(struct call_json *c, struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.n;) {
        unsigned char byte = (unsigned char)text.p[i];
        struct str rest = { text.p + i, text.n - i };
        bool quoted = c->state == CALL_STRING || c->state == CALL_QUOTED_KEY;
        if (c->state == CALL_KEY_START) {
            i += begin_key(c, byte, out);
        } else if (c->state == CALL_VALUE) {
            read_value(c, byte, out);
            i++;
            if (c->depth == 0 && (byte == '}' || byte == ']')) return i;
        } else if (byte == (quoted ? BYTE_QUOTE : ':')) {
            buf_puts(out, quoted ? "\"" : "\":");
            c->state = CALL_VALUE;
            i++;
        } else {
            i += read_inside(rest, quoted ? BYTE_QUOTE : ':', out);
        }
    }
    return text.n;
}
