/* chat_value.c - JSON values as the canonical template prints them.
 *
 * Owns Python's whitespace, truth, number and key-order rules. Knows no messages and no schemas.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "text/chat_parts.h"

/* The 29 code points that str.strip() removes. */
static bool is_space(uint32_t c)
{
    if (c <= 0x20) return c == 0x20 || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f);
    if (c < 0x1680) return c == 0x85 || c == 0xa0;
    return c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

size_t chat_space_first(struct str s)
{
    if (!s.n) return 0;
    size_t used = 0;
    return is_space(utf8_decode(s.p, s.n, &used)) ? used : 0;
}

size_t chat_space_last(struct str s)
{
    /* Whitespace is at most three bytes long. */
    for (size_t len = 1; len <= 3 && len <= s.n; len++) {
        struct str tail = { s.p + s.n - len, len };
        if (chat_space_first(tail) == len) return len;
    }
    return 0;
}

struct str chat_trim_left(struct str s)
{
    for (size_t n; (n = chat_space_first(s)) > 0; s.n -= n) s.p += n;
    return s;
}

struct str chat_trim_right(struct str s)
{
    for (size_t n; (n = chat_space_last(s)) > 0;) s.n -= n;
    return s;
}

struct str chat_trim(struct str s)
{
    return chat_trim_right(chat_trim_left(s));
}

bool chat_truthy(const struct json *j)
{
    if (!j) return false;
    switch (j->type) {
    case JSON_NULL: return false;
    case JSON_BOOL: return j->boolean;
    case JSON_INT:
    case JSON_FLOAT: return j->number != 0;
    case JSON_STRING: return j->text.n > 0;
    case JSON_ARRAY:
    case JSON_OBJECT: return j->n > 0;
    }
    return false;
}

void chat_fail(struct chat_out *o, const char *fmt, ...)
{
    if (o->st) return;
    char sentence[384];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    o->st = fail(o->err, BZ_ERR_FORMAT, "%s[%zu]: %s", o->place, o->index, sentence);
}

/* str.lower() for the scripts in everyday use that have case; a capital of a rarer script sorts by
 * its own code point. Every `step`-th code point of lo..hi moves by `delta`. */
static const struct {
    uint16_t lo, hi, step;
    int16_t delta;
} lower_ranges[] = {
    { 0x0041, 0x005a, 1, 32 },
    { 0x00c0, 0x00d6, 1, 32 },
    { 0x00d8, 0x00de, 1, 32 },
    /* Latin Extended; Y with diaeresis goes back to Latin-1 */
    { 0x0100, 0x012e, 2, 1 },
    { 0x0132, 0x0136, 2, 1 },
    { 0x0139, 0x0147, 2, 1 },
    { 0x014a, 0x0176, 2, 1 },
    { 0x0178, 0x0178, 1, -121 },
    { 0x0179, 0x017d, 2, 1 },
    { 0x01a0, 0x01a0, 1, 1 },
    { 0x01af, 0x01af, 1, 1 },
    { 0x01cd, 0x01db, 2, 1 },
    { 0x0218, 0x021a, 2, 1 },
    /* Greek */
    { 0x0386, 0x0386, 1, 38 },
    { 0x0388, 0x038a, 1, 37 },
    { 0x038c, 0x038c, 1, 64 },
    { 0x038e, 0x038f, 1, 63 },
    { 0x0391, 0x03a1, 1, 32 },
    { 0x03a3, 0x03ab, 1, 32 },
    /* Cyrillic */
    { 0x0400, 0x040f, 1, 80 },
    { 0x0410, 0x042f, 1, 32 },
    { 0x0460, 0x0480, 2, 1 },
    { 0x048a, 0x04be, 2, 1 },
    { 0x04c0, 0x04c0, 1, 15 },
    { 0x04c1, 0x04cd, 2, 1 },
    { 0x04d0, 0x052e, 2, 1 },
    /* Armenian */
    { 0x0531, 0x0556, 1, 48 },
    /* Latin Extended Additional, with the capital sharp s */
    { 0x1e00, 0x1e94, 2, 1 },
    { 0x1e9e, 0x1e9e, 1, -7615 },
    { 0x1ea0, 0x1efe, 2, 1 },
    /* fullwidth A..Z */
    { 0xff21, 0xff3a, 1, 32 },
};

static uint32_t lower(uint32_t c)
{
    for (size_t i = 0; i < sizeof lower_ranges / sizeof lower_ranges[0]; i++) {
        if (c < lower_ranges[i].lo) return c;
        if (c <= lower_ranges[i].hi && (c - lower_ranges[i].lo) % lower_ranges[i].step == 0)
            return (uint32_t)((int32_t)c + lower_ranges[i].delta);
    }
    return c;
}

static uint32_t next_lower(struct str *s)
{
    size_t used = 0;
    uint32_t c = utf8_decode(s->p, s->n, &used);
    s->p += used;
    s->n -= used;
    return lower(c);
}

static int compare_lower(struct str a, struct str b)
{
    while (a.n && b.n) {
        uint32_t x = next_lower(&a), y = next_lower(&b);
        if (x != y) return x < y ? -1 : 1;
    }
    return (a.n > 0) - (b.n > 0);
}

static int compare_index(const struct chat_member *a, const struct chat_member *b)
{
    return (a->index > b->index) - (a->index < b->index);
}

static int by_exact_key(const void *pa, const void *pb)
{
    const struct chat_member *a = pa, *b = pb;
    size_t n = a->key.n < b->key.n ? a->key.n : b->key.n;
    int c = n ? memcmp(a->key.p, b->key.p, n) : 0;
    if (c) return c;
    if (a->key.n != b->key.n) return a->key.n < b->key.n ? -1 : 1;
    return compare_index(a, b);
}

static int by_lower_key(const void *pa, const void *pb)
{
    const struct chat_member *a = pa, *b = pb;
    int c = compare_lower(a->key, b->key);
    return c ? c : compare_index(a, b);
}

size_t chat_group_members(struct chat_out *o, const struct json *object, struct chat_member **out)
{
    *out = NULL;
    if (!object->n) return 0;
    struct chat_member *m = arena_alloc(o->scratch, object->n, sizeof *m);
    if (!m) {
        if (!o->st) o->st = fail_memory(o->err, (uint64_t)object->n * sizeof *m);
        return 0;
    }
    size_t n = 0;
    for (const struct json *c = object->child; c; c = c->next, n++)
        m[n] = (struct chat_member) { c->key, c, n };
    qsort(m, n, sizeof *m, by_exact_key);
    *out = m;
    return n;
}

size_t chat_sort_members(struct chat_out *o, const struct json *object, struct chat_member **out)
{
    size_t n = chat_group_members(o, object, out), kept = 0;
    struct chat_member *m = *out;
    for (size_t i = 0; i < n; i++) {
        if (kept && str_eq(m[kept - 1].key, m[i].key)) m[kept - 1].value = m[i].value;
        else m[kept++] = m[i];
    }
    if (kept) qsort(m, kept, sizeof *m, by_lower_key);
    return kept;
}

/* repr(float): the shortest digits that read back, as 12.5 while the decimal exponent is in -4..15
 * and as 1.25e+16 outside. */
static void put_float(struct buf *b, double d)
{
    if (!isfinite(d)) {
        buf_puts(b, isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
        return;
    }
    struct buf t = { 0 };
    json_put_f64(&t, fabs(d));
    char digits[20];
    int n = 0, point = 0; /* value = 0.DIGITS * 10^point */
    bool after_point = false;
    for (const char *p = t.failed ? "" : t.data; *p; p++) {
        if (*p == 'e' || *p == 'E') {
            point += (int)strtol(p + 1, NULL, 10);
            break;
        }
        if (*p == '.') {
            after_point = true;
            continue;
        }
        if (n == 0 && *p == '0') {
            point -= after_point;
            continue;
        }
        if (n < (int)sizeof digits) digits[n++] = *p;
        point += !after_point;
    }
    b->failed |= t.failed;
    buf_free(&t);
    while (n > 1 && digits[n - 1] == '0') n--;

    if (signbit(d)) buf_putc(b, '-');
    if (n == 0) {
        buf_puts(b, "0.0");
    } else if (point < -3 || point > 16) {
        buf_putc(b, digits[0]);
        if (n > 1) buf_putc(b, '.');
        buf_put(b, digits + 1, (size_t)n - 1);
        buf_printf(b, "e%c%02d", point - 1 < 0 ? '-' : '+', abs(point - 1));
    } else if (point <= 0) {
        buf_printf(b, "0.%.*s%.*s", -point, "000", n, digits);
    } else if (point >= n) {
        buf_printf(b, "%.*s%.*s.0", n, digits, point - n, "0000000000000000");
    } else {
        buf_printf(b, "%.*s.%.*s", point, digits, n - point, digits + point);
    }
}

static void put_number(struct buf *b, const struct json *j)
{
    if (j->type == JSON_INT) {
        buf_printf(b, "%" PRId64, j->integer);
        return;
    }
    /* An integer too long for 64 bits arrives as a float, but Python prints every digit. */
    bool whole = j->text.n > 0;
    for (size_t i = 0; i < j->text.n; i++) whole &= !strchr(".eE", j->text.p[i]);
    if (whole) buf_put_str(b, j->text);
    else put_float(b, j->number);
}

/* Neither a letter nor a mark: repr() escapes these. Exact for Latin and General Punctuation, where
 * the invisible characters that people paste live. */
static bool is_unprintable(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad || (c > 0xa0 && is_space(c)) ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* repr(str) */
static void put_python_quoted(struct buf *b, struct str s)
{
    bool has_single = memchr(s.p ? s.p : "", '\'', s.n),
         has_double = memchr(s.p ? s.p : "", '"', s.n);
    char quote = has_single && !has_double ? '"' : '\'';
    buf_putc(b, quote);
    for (size_t i = 0, used; i < s.n; i += used) {
        uint32_t c = utf8_decode(s.p + i, s.n - i, &used);
        if (c == '\n') buf_puts(b, "\\n");
        else if (c == '\r') buf_puts(b, "\\r");
        else if (c == '\t') buf_puts(b, "\\t");
        else if (c == '\\' || c == (unsigned char)quote) buf_printf(b, "\\%c", (char)c);
        else if (is_unprintable(c)) buf_printf(b, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
        else buf_put(b, s.p + i, used);
    }
    buf_putc(b, quote);
}

static void put_python(struct chat_out *o, const struct json *j, bool quoted)
{
    struct buf *b = o->text;
    switch (j->type) {
    case JSON_NULL: buf_puts(b, "None"); return;
    case JSON_BOOL: buf_puts(b, j->boolean ? "True" : "False"); return;
    case JSON_INT:
    case JSON_FLOAT: put_number(b, j); return;
    case JSON_STRING:
        if (quoted) put_python_quoted(b, j->text);
        else buf_put_str(b, j->text);
        return;
    case JSON_ARRAY:
        buf_putc(b, '[');
        for (const struct json *c = j->child; c; c = c->next) {
            put_python(o, c, true);
            if (c->next) buf_puts(b, ", ");
        }
        buf_putc(b, ']');
        return;
    case JSON_OBJECT:
        buf_putc(b, '{');
        for (const struct json *c = j->child; c; c = c->next) {
            put_python_quoted(b, c->key);
            buf_puts(b, ": ");
            put_python(o, c, true);
            if (c->next) buf_puts(b, ", ");
        }
        buf_putc(b, '}');
        return;
    }
}

void chat_put_python(struct chat_out *o, const struct json *j)
{
    if (j) put_python(o, j, false);
}

void chat_put_members(struct chat_out *o, const struct json *object, bool quote_keys)
{
    struct chat_member *m;
    size_t n = chat_sort_members(o, object, &m);
    for (size_t i = 0; i < n; i++) {
        if (i) buf_putc(o->text, ',');
        if (quote_keys) chat_put_tag(o, SPECIAL_QUOTE);
        buf_put_str(o->text, m[i].key);
        if (quote_keys) chat_put_tag(o, SPECIAL_QUOTE);
        buf_putc(o->text, ':');
        chat_put_value(o, m[i].value, quote_keys);
    }
}

void chat_put_value(struct chat_out *o, const struct json *j, bool quote_keys)
{
    struct buf *b = o->text;
    switch (j->type) {
    case JSON_NULL: buf_puts(b, "null"); return;
    case JSON_BOOL: buf_puts(b, j->boolean ? "true" : "false"); return;
    case JSON_INT:
    case JSON_FLOAT: put_number(b, j); return;
    case JSON_STRING:
        chat_put_tag(o, SPECIAL_QUOTE);
        buf_put_str(b, j->text);
        chat_put_tag(o, SPECIAL_QUOTE);
        return;
    case JSON_ARRAY:
        buf_putc(b, '[');
        for (const struct json *c = j->child; c; c = c->next) {
            chat_put_value(o, c, quote_keys);
            if (c->next) buf_putc(b, ',');
        }
        buf_putc(b, ']');
        return;
    case JSON_OBJECT:
        buf_putc(b, '{');
        chat_put_members(o, j, quote_keys);
        buf_putc(b, '}');
        return;
    }
}
