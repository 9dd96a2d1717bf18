/* chat_call.c - one tool call of the model, `call:NAME{key:value,...}`, to a name and JSON.
 *
 *   value  = <|"|>any text<|"|> | "JSON string" | number | true | false | null
 *          | {key:value,...} | [value,...]
 *   key    = bare text up to the colon, or a string of either kind
 *
 * Models slip, so text that breaks this grammar is read a second time with repairs:
 *   - a value in single quotes, with or without a stray <|"|> after it;
 *   - a last string whose closing <|"|> is missing: it ends before the closing brackets;
 *   - a bare text where the tool's schema wants a string: it ends at `,known_key:` or at the end;
 *   - missing closing brackets at the end, if the call's closing tag was seen or another repair was
 *     needed (a plain `{n:1` may be a number cut short).
 * Numbers are copied as written, so that integers stay integers. If a key comes twice its last
 * value counts, as in readers of JSON, and only that one is reported.
 */
#include <stdlib.h>

#include "text/chat_parts.h"

enum { MAX_DEPTH = 100 }; /* below the limit of the JSON reader */

struct reader {
    struct str s;
    size_t pos;
    struct buf *out;
    const struct json *props; /* the tool's properties, or NULL */
    bool repair, may_end;
    bool unquoted; /* from here on no single quote ends a value */
    size_t depth;
    char closers[MAX_DEPTH]; /* what would close the open brackets, outermost first */
};

static struct str rest(const struct reader *r)
{
    return (struct str) { r->s.p + r->pos, r->s.n - r->pos };
}

static void skip_space(struct reader *r)
{
    r->pos = r->s.n - chat_trim_left(rest(r)).n;
}

static bool at_end(const struct reader *r)
{
    return r->pos >= r->s.n;
}

static char peek(const struct reader *r)
{
    return at_end(r) ? 0 : r->s.p[r->pos];
}

static bool accept(struct reader *r, const char *text)
{
    if (!str_starts(rest(r), text)) return false;
    r->pos += strlen(text);
    return true;
}

/* The end of the text or one of these characters comes next, perhaps after space. A value ends
 * before ",}]", a key before ":". */
static bool is_before(const struct reader *r, const char *stops)
{
    struct str s = chat_trim_left(rest(r));
    return !s.n || (*s.p && strchr(stops, *s.p));
}

/* Cut the closing brackets, as many as the open ones explain, off the end of the text: what is left
 * from pos on is a string that lacked its end. The brackets then close by may_end. */
static void cut_closers(struct reader *r)
{
    struct str s = chat_trim_right(rest(r)), t = s;
    for (size_t k = 0; k < r->depth && t.n && t.p[t.n - 1] == r->closers[k]; k++) {
        s = (struct str) { t.p, t.n - 1 };
        t = chat_trim_right(s);
    }
    r->s.n = r->pos + s.n;
}

static bool read_quoted(struct reader *r) /* after the opening <|"|> */
{
    struct str text = rest(r);
    for (size_t i = 0; i < text.n; i++) {
        struct str here = { text.p + i, text.n - i };
        if (!str_starts(here, TAG_QUOTE)) continue;
        json_put_string(r->out, (struct str) { text.p, i });
        r->pos += i + strlen(TAG_QUOTE);
        return true;
    }
    if (!r->repair) return false;
    cut_closers(r);
    json_put_string(r->out, rest(r));
    r->pos = r->s.n;
    r->may_end = true;
    return true;
}

static bool read_json_string(struct reader *r)
{
    size_t end = r->pos + 1;
    while (end < r->s.n && r->s.p[end] != '"') end += r->s.p[end] == '\\' ? 2 : 1;
    if (end >= r->s.n) return false;
    struct arena a = { 0 };
    struct json *j = NULL;
    struct str text = { r->s.p + r->pos, end + 1 - r->pos };
    enum bz_status st = json_parse(&j, text, &a, NULL);
    if (!st) json_put_string(r->out, j->text);
    r->out->failed |= st == BZ_ERR_MEMORY;
    arena_free(&a);
    r->pos = end + 1;
    return !st;
}

/* 'text': ends at a quote with a stop behind it, so that an apostrophe does no harm. */
static bool read_single_quoted(struct reader *r, const char *stops)
{
    struct reader t = *r;
    struct buf text = { 0 };
    bool ok = false;
    for (t.pos++; !at_end(&t) && !ok;) {
        if (accept(&t, "\\'")) {
            buf_putc(&text, '\'');
        } else if (accept(&t, "'")) {
            size_t after = t.pos;
            accept(&t, TAG_QUOTE);
            ok = is_before(&t, stops);
            if (!ok) {
                t.pos = after;
                buf_putc(&text, '\'');
            }
        } else {
            buf_putc(&text, t.s.p[t.pos++]);
        }
    }
    if (ok) {
        json_put_string(r->out, buf_str(&text));
        r->pos = t.pos;
        r->may_end = true;
    }
    r->out->failed |= text.failed;
    buf_free(&text);
    return ok;
}

static bool accepts_string(const struct json *schema)
{
    const struct json *type = json_get(schema, "type");
    struct str name = type && type->type == JSON_STRING ? type->text : (struct str) { NULL, 0 };
    if (str_is(name, "string") || str_is(name, "STRING")) return true;
    if (type && type->type == JSON_ARRAY)
        for (const struct json *c = type->child; c; c = c->next)
            if (c->type == JSON_STRING && (str_is(c->text, "string") || str_is(c->text, "STRING")))
                return true;
    const struct json *any = json_get(schema, "anyOf");
    if (any && any->type == JSON_ARRAY)
        for (const struct json *c = any->child; c; c = c->next)
            if (accepts_string(c)) return true;
    return false;
}

static const struct json *find_member(const struct json *object, struct str key)
{
    const struct json *found = NULL;
    for (const struct json *c = object ? object->child : NULL; c; c = c->next)
        if (str_eq(c->key, key)) found = c;
    return found;
}

/* The bare key at the start of s: all up to a structural character. */
static struct str bare_key(struct str s)
{
    size_t n = 0;
    while (n < s.n && !strchr(":,{}[]\"", s.p[n])) n++;
    return (struct str) { s.p, n };
}

/* `,known_key:` begins at s. */
static bool starts_member(struct str s, const struct json *props)
{
    s = chat_trim_left((struct str) { s.p + 1, s.n - 1 });
    struct str key = bare_key(s);
    return key.n < s.n && s.p[key.n] == ':' && find_member(props, chat_trim_right(key));
}

static void read_raw_string(struct reader *r)
{
    size_t next = r->pos;
    for (; next < r->s.n; next++) {
        struct str here = { r->s.p + next, r->s.n - next };
        if (*here.p == ',' && starts_member(here, r->props)) break;
    }
    if (next == r->s.n) {
        cut_closers(r);
        next = r->s.n;
    }
    json_put_string(r->out, (struct str) { r->s.p + r->pos, next - r->pos });
    r->pos = next;
    r->may_end = true;
}

static size_t count_digits(struct str s)
{
    size_t n = 0;
    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9') n++;
    return n;
}

/* Is a JSON number below 10^308? Readers of JSON do not take one that no double holds. */
static bool is_finite(struct str s)
{
    enum { MOST = 308, ENOUGH = 1 << 24 }; /* past it an exponent does not matter */
    int64_t place = 0, exponent = 0;       /* it is less than 10^(place + exponent) */
    bool counts = false, point = false, negative = false;
    size_t i = s.p[0] == '-';
    for (; i < s.n && s.p[i] != 'e' && s.p[i] != 'E'; i++) {
        point = point || s.p[i] == '.';
        counts = counts || (s.p[i] >= '1' && s.p[i] <= '9');
        if (counts && !point) place++;
        if (!counts && s.p[i] == '0' && point) place--;
    }
    for (; i < s.n; i++) {
        negative = negative || s.p[i] == '-';
        if (s.p[i] >= '0' && s.p[i] <= '9' && exponent < ENOUGH)
            exponent = 10 * exponent + (s.p[i] - '0');
    }
    return !counts || place + (negative ? -exponent : exponent) <= MOST;
}

/* true, false, null or a JSON number, copied as it stands. */
static bool read_literal(struct reader *r)
{
    struct reader t = *r;
    if (!accept(&t, "true") && !accept(&t, "false") && !accept(&t, "null")) {
        accept(&t, "-");
        size_t n = count_digits(rest(&t));
        if (!n || (n > 1 && peek(&t) == '0')) return false;
        t.pos += n;
        if (accept(&t, ".")) {
            if (!(n = count_digits(rest(&t)))) return false;
            t.pos += n;
        }
        if (accept(&t, "e") || accept(&t, "E")) {
            if (!accept(&t, "+")) accept(&t, "-");
            if (!(n = count_digits(rest(&t)))) return false;
            t.pos += n;
        }
        if (!is_finite((struct str) { r->s.p + r->pos, t.pos - r->pos })) return false;
    }
    if (!is_before(&t, ",}]")) return false;
    buf_put(r->out, r->s.p + r->pos, t.pos - r->pos);
    r->pos = t.pos;
    return true;
}

static bool read_list(struct reader *r, bool is_object);

/* `prop`: the schema of this value where it is known. */
static bool read_value(struct reader *r, const struct json *prop)
{
    size_t before = r->pos;
    skip_space(r);
    if (accept(r, TAG_QUOTE)) return read_quoted(r);
    if (peek(r) == '"') return read_json_string(r);
    if (peek(r) == '{') return read_list(r, true);
    if (peek(r) == '[') return read_list(r, false);
    if (read_literal(r)) return true;
    if (!r->repair) return false;
    if (peek(r) == '\'' && !r->unquoted) {
        if (read_single_quoted(r, ",}]")) return true;
        r->unquoted = true;
    }
    if (!accepts_string(prop)) return false;
    r->pos = before; /* raw text keeps its leading space */
    read_raw_string(r);
    return true;
}

static bool read_key(struct reader *r, struct str *bare)
{
    *bare = (struct str) { NULL, 0 };
    skip_space(r);
    if (accept(r, TAG_QUOTE)) return read_quoted(r);
    if (peek(r) == '"') return read_json_string(r);
    if (peek(r) == '\'') return r->repair && read_single_quoted(r, ":");
    struct str key = bare_key(rest(r));
    *bare = chat_trim_right(key);
    if (!bare->n) return false;
    json_put_string(r->out, *bare);
    r->pos += key.n;
    return true;
}

static bool read_member(struct reader *r)
{
    struct str key;
    if (!read_key(r, &key)) return false;
    skip_space(r);
    if (!accept(r, ":")) return false;
    buf_putc(r->out, ':');
    return read_value(r, r->depth == 1 && key.n ? find_member(r->props, key) : NULL);
}

/* An object or an array, from its opening bracket on. */
static bool read_list(struct reader *r, bool is_object)
{
    const char closer[2] = { is_object ? '}' : ']', 0 };
    if (r->depth == MAX_DEPTH) return false;
    r->closers[r->depth++] = closer[0];
    buf_putc(r->out, is_object ? '{' : '[');
    r->pos++;
    skip_space(r);
    bool open = !accept(r, closer);
    for (bool comma = false; open; comma = true) {
        if (at_end(r) && r->repair && r->may_end) break;
        if (comma) buf_putc(r->out, ',');
        if (!(is_object ? read_member(r) : read_value(r, NULL))) return false;
        skip_space(r);
        open = !accept(r, closer);
        if (open && !accept(r, ",") && !(at_end(r) && r->repair)) return false;
        skip_space(r);
    }
    buf_putc(r->out, closer[0]);
    r->depth--;
    return true;
}

static bool read_arguments(struct reader r)
{
    r.out->n = 0;
    if (!read_list(&r, true)) return false;
    skip_space(&r);
    return at_end(&r) && !r.out->failed;
}

static int by_place(const void *a, const void *b)
{
    const struct chat_member *x = a, *y = b;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Whether any object in j had a key twice; it no longer has. */
static bool drop_twins(struct chat_out *o, struct json *j)
{
    bool any = false;
    for (struct json *c = j->child; c; c = c->next) any |= drop_twins(o, c);
    struct chat_member *m;
    size_t n = j->type == JSON_OBJECT ? chat_sort_members(o, j, &m) : j->n;
    if (n == j->n || o->st) return any;
    qsort(m, n, sizeof *m, by_place);
    struct json **at = &j->child;
    for (size_t i = 0; i < n; i++) {
        struct json *kept = (struct json *)(uintptr_t)m[i].value;
        *at = kept;
        at = &kept->next;
    }
    *at = NULL;
    j->n = n;
    return true;
}

/* Arguments that name a key twice, without. */
static void mend_twins(struct buf *args)
{
    struct arena a = { 0 };
    struct bz_err err;
    struct chat_out o = { .scratch = &a, .err = &err };
    struct json *j = NULL;
    enum bz_status st = json_parse(&j, buf_str(args), &a, &err);
    if (st == BZ_OK && drop_twins(&o, j) && !o.st) {
        args->n = 0;
        json_put(args, j);
    }
    args->failed |= st == BZ_ERR_MEMORY || o.st == BZ_ERR_MEMORY;
    arena_free(&a);
}

static bool read_arguments_mended(struct reader r)
{
    if (!read_arguments(r)) return false;
    mend_twins(r.out);
    return !r.out->failed;
}

bool chat_read_call(struct str body, bool closed, const struct json *tools, struct str *name,
                    struct buf *args)
{
    struct str s = chat_trim(body);
    if (!str_starts(s, "call:")) return false;
    s = (struct str) { s.p + 5, s.n - 5 };
    const char *brace = memchr(s.p, '{', s.n);
    if (!brace) return false;
    *name = chat_trim((struct str) { s.p, (size_t)(brace - s.p) });
    if (!name->n) return false;

    const struct json *props = NULL;
    for (const struct json *t = tools ? tools->child : NULL; t && !props; t = t->next) {
        const struct json *f = json_get(t, "function");
        if (str_eq(json_get_str(f, "name"), *name))
            props = json_get(json_get(f, "parameters"), "properties");
    }
    struct reader r = { .s = { brace, s.n - (size_t)(brace - s.p) },
                        .out = args,
                        .props = props && props->type == JSON_OBJECT ? props : NULL,
                        .may_end = closed };
    if (read_arguments_mended(r)) return true;
    r.repair = true;
    return !args->failed && read_arguments_mended(r);
}
