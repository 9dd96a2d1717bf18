/* json.c - a strict reader of RFC 8259 and a compact writer.
 *
 * The reader accepts the grammar and nothing beside it: no trailing commas, no comments, no bare
 * control characters, no bytes that are not UTF-8. Half a surrogate pair, which the grammar allows
 * and UTF-8 cannot say, becomes U+FFFD. Numbers are finite.
 *
 * The decimal point of strtod and printf follows the host's locale; here it is always '.'.
 */
#include "base/json.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

#define MAX_DEPTH   128
#define REPLACEMENT 0xfffdu

struct parser {
    struct str text;
    size_t pos;
    struct arena *arena;
    struct bz_err *err;
};

static enum bz_status bad(struct parser *p, const char *what)
{
    return fail(p->err, BZ_ERR_FORMAT, "not valid JSON: %s at byte %zu", what, p->pos);
}

/* The next byte, or -1 at the end. */
static int peek(const struct parser *p)
{
    return p->pos < p->text.n ? (unsigned char)p->text.p[p->pos] : -1;
}

static void skip_space(struct parser *p)
{
    for (int c = peek(p); c == ' ' || c == '\n' || c == '\r' || c == '\t'; c = peek(p)) p->pos++;
}

/* Strings. */

static int hex_digit(int c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits at `at`, or -1. */
static int32_t hex4(const struct parser *p, size_t at)
{
    if (at > p->text.n || p->text.n - at < 4) return -1;
    int32_t v = 0;
    for (size_t i = at; i < at + 4; i++) {
        int d = hex_digit((unsigned char)p->text.p[i]);
        if (d < 0) return -1;
        v = v << 4 | d;
    }
    return v;
}

/* pos is at the 'u' of an escape: the code point, joined with a low surrogate that follows. */
static enum bz_status read_unicode_escape(struct parser *p, uint32_t *cp)
{
    int32_t high = hex4(p, p->pos + 1);
    if (high < 0) return bad(p, "\\u without four hexadecimal digits");
    p->pos += 5;
    *cp = (uint32_t)high;
    if (high < 0xd800 || high > 0xdfff) return BZ_OK;
    *cp = REPLACEMENT;
    if (high > 0xdbff || peek(p) != '\\' || p->text.n - p->pos < 6 || p->text.p[p->pos + 1] != 'u')
        return BZ_OK;
    int32_t low = hex4(p, p->pos + 2);
    if (low < 0xdc00 || low > 0xdfff) return BZ_OK;
    *cp = 0x10000 + (uint32_t)((high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    p->pos += 6;
    return BZ_OK;
}

/* pos is after a backslash. */
static enum bz_status read_escape(struct parser *p, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    int c = peek(p);
    const char *found = c > 0 ? strchr(from, c) : NULL;
    if (found) {
        *(*to)++ = into[found - from];
        p->pos++;
        return BZ_OK;
    }
    if (c != 'u') return bad(p, "an unknown escape");
    uint32_t cp = 0;
    enum bz_status st = read_unicode_escape(p, &cp);
    if (st == BZ_OK) *to += utf8_encode(cp, *to);
    return st;
}

/* Everything up to the closing quote goes to `to`, which has room for as many bytes as are read:
 * no escape is shorter than what it stands for. */
static enum bz_status read_chars(struct parser *p, char **to)
{
    for (;;) {
        int c = peek(p);
        if (c < 0) return bad(p, "a string without an end");
        if (c == '"') return BZ_OK;
        if (c < 0x20) return bad(p, "a control character in a string");
        if (c == '\\') {
            p->pos++;
            enum bz_status st = read_escape(p, to);
            if (st) return st;
            continue;
        }
        size_t n = 1;
        if (c >= 0x80) {
            utf8_decode(p->text.p + p->pos, p->text.n - p->pos, &n);
            if (n == 1) return bad(p, "a byte that is not UTF-8");
        }
        memcpy(*to, p->text.p + p->pos, n);
        *to += n;
        p->pos += n;
    }
}

/* pos is at the opening quote. */
static enum bz_status read_string(struct parser *p, struct str *out)
{
    size_t n = ++p->pos;
    while (n < p->text.n && p->text.p[n] != '"') n += p->text.p[n] == '\\' ? 2 : 1;
    n -= p->pos; /* bytes between the quotes, or at most one more than there are */
    char *start = arena_alloc(p->arena, n + 1, 1);
    if (!start) return fail_memory(p->err, n + 1);
    char *to = start;
    enum bz_status st = read_chars(p, &to);
    if (st) return st;
    p->pos++;
    *out = (struct str) { start, (size_t)(to - start) };
    return BZ_OK;
}

/* Numbers. */

static size_t skip_digits(struct parser *p)
{
    size_t start = p->pos;
    while (peek(p) >= '0' && peek(p) <= '9') p->pos++;
    return p->pos - start;
}

/* strtod of a text whose decimal point is '.'. */
static enum bz_status read_double(struct parser *p, struct str text, double *out)
{
    const char *point = localeconv()->decimal_point;
    const char *dot = memchr(text.p, '.', text.n);
    if (!dot || strcmp(point, ".") == 0) {
        *out = strtod(text.p, NULL);
        return BZ_OK;
    }
    struct buf b = { 0 };
    buf_put(&b, text.p, (size_t)(dot - text.p));
    buf_puts(&b, point);
    buf_puts(&b, dot + 1);
    if (!b.failed) *out = strtod(b.data, NULL);
    enum bz_status st = b.failed ? fail_memory(p->err, text.n + 1) : BZ_OK;
    buf_free(&b);
    return st;
}

/* A run of digits, perhaps signed; false past 64 bits. */
static bool read_integer(struct str s, int64_t *out)
{
    bool minus = s.p[0] == '-';
    int64_t v = 0; /* counts down: the negative side is one larger */
    for (size_t i = minus; i < s.n; i++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, s.p[i] - '0', &v))
            return false;
    if (!minus && __builtin_sub_overflow(0, v, &v)) return false;
    *out = v;
    return true;
}

static enum bz_status read_number(struct parser *p, struct json *j)
{
    size_t start = p->pos;
    bool whole = true;
    if (peek(p) == '-') p->pos++;
    size_t first = p->pos, n = skip_digits(p);
    if (n == 0) return bad(p, "a minus without a number");
    if (n > 1 && p->text.p[first] == '0') return bad(p, "a number that starts with 0");
    if (peek(p) == '.') {
        whole = false;
        p->pos++;
        if (skip_digits(p) == 0) return bad(p, "a decimal point without digits");
    }
    if (peek(p) == 'e' || peek(p) == 'E') {
        whole = false;
        p->pos++;
        if (peek(p) == '+' || peek(p) == '-') p->pos++;
        if (skip_digits(p) == 0) return bad(p, "an exponent without digits");
    }
    n = p->pos - start;
    j->text = (struct str) { arena_copy_str(p->arena, p->text.p + start, n), n };
    if (!j->text.p) return fail_memory(p->err, n + 1);
    j->type = JSON_INT;
    if (whole && read_integer(j->text, &j->integer)) {
        j->number = j->integer || j->text.p[0] != '-' ? (double)j->integer : -0.0;
        return BZ_OK;
    }
    j->type = JSON_FLOAT;
    enum bz_status st = read_double(p, j->text, &j->number);
    if (st == BZ_OK && !isfinite(j->number)) return bad(p, "a number that is too large");
    return st;
}

/* Values. */

static enum bz_status read_word(struct parser *p, const char *word)
{
    size_t n = strlen(word);
    if (p->text.n - p->pos < n || memcmp(p->text.p + p->pos, word, n) != 0)
        return bad(p, "an unknown word");
    p->pos += n;
    return BZ_OK;
}

static enum bz_status read_value(struct parser *p, struct json **out, int depth);

static enum bz_status read_key(struct parser *p, struct str *key)
{
    if (peek(p) != '"') return bad(p, "a member without a quoted name");
    enum bz_status st = read_string(p, key);
    if (st) return st;
    skip_space(p);
    if (peek(p) != ':') return bad(p, "a name without ':'");
    p->pos++;
    skip_space(p);
    return BZ_OK;
}

/* pos is at the opening bracket of an array or object. */
static enum bz_status read_list(struct parser *p, struct json *j, int depth)
{
    int closing = j->type == JSON_OBJECT ? '}' : ']';
    if (depth == MAX_DEPTH) return bad(p, "more than 128 levels");
    p->pos++;
    skip_space(p);
    if (peek(p) == closing) {
        p->pos++;
        return BZ_OK;
    }
    for (struct json **tail = &j->child;; tail = &(*tail)->next) {
        struct str key = { 0 };
        enum bz_status st = j->type == JSON_OBJECT ? read_key(p, &key) : BZ_OK;
        if (st == BZ_OK) st = read_value(p, tail, depth + 1);
        if (st) return st;
        (*tail)->key = key;
        j->n++;
        skip_space(p);
        int c = peek(p);
        if (c != closing && c != ',')
            return bad(p, closing == '}' ? "an object without ',' or '}'"
                                         : "an array without ',' or ']'");
        p->pos++;
        if (c == closing) return BZ_OK;
        skip_space(p);
    }
}

static enum bz_status read_value(struct parser *p, struct json **out, int depth)
{
    struct json *j = arena_alloc(p->arena, 1, sizeof *j);
    if (!j) return fail_memory(p->err, sizeof *j);
    *out = j;
    int c = peek(p);
    switch (c) {
    case '"': j->type = JSON_STRING; return read_string(p, &j->text);
    case '[': j->type = JSON_ARRAY; return read_list(p, j, depth);
    case '{': j->type = JSON_OBJECT; return read_list(p, j, depth);
    case 'n': return read_word(p, "null");
    case 't':
    case 'f':
        j->type = JSON_BOOL;
        j->boolean = c == 't';
        return read_word(p, j->boolean ? "true" : "false");
    default:
        if (c == '-' || (c >= '0' && c <= '9')) return read_number(p, j);
        return bad(p, c < 0 ? "a value is missing" : "not a value");
    }
}

enum bz_status json_parse(struct json **out, struct str text, struct arena *a, struct bz_err *err)
{
    struct parser p = { .text = text, .arena = a, .err = err };
    struct json *j;
    skip_space(&p);
    enum bz_status st = read_value(&p, &j, 0);
    if (st) return st;
    skip_space(&p);
    if (p.pos < text.n) return bad(&p, "something after the value");
    *out = j;
    return BZ_OK;
}

const struct json *json_get(const struct json *j, const char *key)
{
    const struct json *found = NULL;
    if (!j || j->type != JSON_OBJECT) return NULL;
    for (const struct json *c = j->child; c; c = c->next)
        if (str_is(c->key, key)) found = c;
    return found;
}

const struct json *json_at(const struct json *j, size_t i)
{
    if (!j || (j->type != JSON_ARRAY && j->type != JSON_OBJECT)) return NULL;
    const struct json *c = j->child;
    for (; c && i; i--) c = c->next;
    return c;
}

struct str json_get_str(const struct json *j, const char *key)
{
    const struct json *c = json_get(j, key);
    return c && c->type == JSON_STRING ? c->text : (struct str) { 0 };
}

/* The writer. */

static void put_escaped(struct buf *b, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", into[] = "\"\\bfnrt";
    const char *found = c ? strchr(from, c) : NULL;
    if (found) buf_printf(b, "\\%c", into[found - from]);
    else buf_printf(b, "\\u%04x", c);
}

void json_put_string(struct buf *b, struct str s)
{
    buf_putc(b, '"');
    size_t from = 0; /* start of the run that needs no change */
    for (size_t i = 0; i < s.n;) {
        unsigned char c = (unsigned char)s.p[i];
        size_t n = 1;
        if (c >= 0x80) utf8_decode(s.p + i, s.n - i, &n);
        bool plain = c >= 0x80 ? n > 1 : c >= 0x20 && c != '"' && c != '\\';
        if (!plain) {
            buf_put(b, s.p + from, i - from);
            from = i + 1;
            if (c >= 0x80) buf_puts(b, "\xef\xbf\xbd");
            else put_escaped(b, c);
        }
        i += n;
    }
    if (s.n) buf_put(b, s.p + from, s.n - from);
    buf_putc(b, '"');
}

/* Lays out "-d.ddde-xx" (printf's %e, in any locale) the way JavaScript writes numbers: plain
 * digits for exponents from -6 to 20, and 1.5e+21 or 1e-7 beyond. */
static void put_decimal(struct buf *b, const char *text)
{
    char digits[20];
    int n = 0, exponent = atoi(strchr(text, 'e') + 1);
    for (const char *c = text; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9') digits[n++] = *c;
    if (text[0] == '-') buf_putc(b, '-');
    if (exponent < -6 || exponent > 20) {
        buf_putc(b, digits[0]);
        if (n > 1) buf_printf(b, ".%.*s", n - 1, digits + 1);
        buf_printf(b, "e%+d", exponent);
    } else if (exponent < 0) {
        buf_printf(b, "0.%.*s%.*s", -exponent - 1, "00000", n, digits);
    } else if (exponent + 1 >= n) {
        buf_printf(b, "%.*s%.*s", n, digits, exponent + 1 - n, "00000000000000000000");
    } else {
        buf_printf(b, "%.*s.%.*s", exponent + 1, digits, n - exponent - 1, digits + exponent + 1);
    }
}

/* For a float, a reader may go through double or straight to float; both must arrive. */
static bool reads_back(const char *text, double d, bool narrow)
{
    if (narrow) return (double)strtof(text, NULL) == d && (double)(float)strtod(text, NULL) == d;
    return strtod(text, NULL) == d;
}

/* One more in the last digit of "d.ddde-xx". All nines would be a shorter number: not wanted. */
static void count_up(char *text)
{
    char *c = strchr(text, 'e') - 1;
    for (; c >= text; c--) {
        if (*c < '0' || *c > '9') continue;
        if (*c != '9') break;
        *c = '0';
    }
    if (c >= text) (*c)++;
}

/* The nearest decimals of 1, 2, ... digits are tried until one reads back. A power of two lies
 * closer to the number below it than to the one above, so that for it the next decimal away from
 * zero may read back where the nearest does not. */
static void put_shortest(struct buf *b, double d, bool narrow)
{
    char text[40];
    int exponent;
    if (!isfinite(d)) {
        buf_puts(b, "null");
        return;
    }
    bool power_of_two = fabs(frexp(d, &exponent)) == 0.5;
    for (int digits = 1; digits <= (narrow ? 9 : 17); digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, d);
        if (reads_back(text, d, narrow)) break;
        if (!power_of_two) continue;
        count_up(text);
        if (reads_back(text, d, narrow)) break;
    }
    put_decimal(b, text);
}

void json_put_f64(struct buf *b, double d)
{
    put_shortest(b, d, false);
}

void json_put_f32(struct buf *b, float f)
{
    put_shortest(b, f, true);
}

static void put_list(struct buf *b, const struct json *j)
{
    bool object = j->type == JSON_OBJECT;
    buf_putc(b, object ? '{' : '[');
    for (const struct json *c = j->child; c; c = c->next) {
        if (object) {
            json_put_string(b, c->key);
            buf_putc(b, ':');
        }
        json_put(b, c);
        if (c->next) buf_putc(b, ',');
    }
    buf_putc(b, object ? '}' : ']');
}

void json_put(struct buf *b, const struct json *j)
{
    switch (j->type) {
    case JSON_NULL: buf_puts(b, "null"); break;
    case JSON_BOOL: buf_puts(b, j->boolean ? "true" : "false"); break;
    case JSON_INT:
    case JSON_FLOAT:
        if (j->text.n) buf_put_str(b, j->text);
        else if (j->type == JSON_INT) buf_printf(b, "%" PRId64, j->integer);
        else json_put_f64(b, j->number);
        break;
    case JSON_STRING: json_put_string(b, j->text); break;
    case JSON_ARRAY:
    case JSON_OBJECT: put_list(b, j); break;
    }
}
