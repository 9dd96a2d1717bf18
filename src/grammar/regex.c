/* regex.c - a pattern to a tree, and the tree to an expression.
 *
 * An assertion looks at what follows, up to the end of the text. So the tree is translated from its
 * end: each piece is given the expression of all that comes behind it. `$` keeps of that the empty
 * text, a lookahead is a conjunction with it. For `^` each piece is also told whether it can stand
 * at the very beginning.
 */
#include "grammar/regex.h"

#include "base/utf8.h"
#include "grammar/tree.h"

enum {
    MAX_PATTERN = 1 << 16,
    MAX_NESTING = 60,
    MAX_COPIES = 64,
    MAX_COUNT = 100000,
    MAX_WORK = 100000 /* pieces translated */
};

struct parser {
    struct store *s;
    struct str text;
    size_t pos;
    unsigned depth;
};

/* ---- reading ---- */

static void *bad(struct parser *p, const char *what)
{
    store_fail(p->s, BZ_ERR_FORMAT, "%s at byte %zu of the pattern", what, p->pos);
    return NULL;
}

static int peek(const struct parser *p)
{
    return p->pos < p->text.n ? (unsigned char)p->text.p[p->pos] : -1;
}

static bool accept(struct parser *p, const char *z)
{
    size_t n = strlen(z);
    if (p->text.n - p->pos < n || memcmp(p->text.p + p->pos, z, n) != 0) return false;
    p->pos += n;
    return true;
}

static uint32_t read_char(struct parser *p)
{
    size_t used = 1;
    uint32_t cp = utf8_decode(p->text.p + p->pos, p->text.n - p->pos, &used);
    p->pos += used;
    return cp;
}

static struct tree *new_tree(struct parser *p, enum shape shape)
{
    return tree_new(p->s, shape);
}

static int hex(int c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* n hexadecimal digits at pos, or -1 and nothing is read. */
static int32_t read_hex(struct parser *p, unsigned n)
{
    int32_t v = 0;
    if (p->text.n - p->pos < n) return -1;
    for (unsigned i = 0; i < n; i++) {
        int d = hex((unsigned char)p->text.p[p->pos + i]);
        if (d < 0) return -1;
        v = v << 4 | d;
    }
    p->pos += n;
    return v;
}

/* After "\u": four digits, perhaps half of a pair, or {...}. */
static uint32_t read_unicode(struct parser *p)
{
    if (accept(p, "{")) {
        uint32_t cp = 0;
        while (hex(peek(p)) >= 0 && cp <= LAST_CP)
            cp = cp << 4 | (uint32_t)hex(p->text.p[p->pos++]);
        if (!accept(p, "}") || cp > LAST_CP) bad(p, "a code point that is none");
        return cp;
    }
    int32_t high = read_hex(p, 4);
    if (high < 0) return (uint32_t)(intptr_t)bad(p, "\\u without four hexadecimal digits");
    size_t before = p->pos;
    if (high >= 0xd800 && high < 0xdc00 && accept(p, "\\u")) {
        int32_t low = read_hex(p, 4);
        if (low >= 0xdc00 && low < 0xe000)
            return 0x10000 + (uint32_t)((high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
        p->pos = before;
    }
    return (uint32_t)high;
}

/* \d, \w, \s, \p{..} and their opposites: true, and the set in v. */
static bool read_class_escape(struct parser *p, struct vec *v)
{
    static const uint32_t digits[] = { '0', '9' },
                          word[] = { '0', '9', 'A', 'Z', '_', '_', 'a', 'z' };
    static const uint32_t space[] = { 9,      13,     ' ',    ' ',    0xa0,   0xa0,   0x1680,
                                      0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f,
                                      0x205f, 0x205f, 0x3000, 0x3000, 0xfeff, 0xfeff };
    int c = peek(p);
    if (c < 0 || !strchr("dDwWsSpP", c)) return false;
    p->pos++;
    struct vec set = { 0 };
    switch (c | 0x20) {
    case 'd': vec_put(p->s, &set, digits, 2); break;
    case 'w': vec_put(p->s, &set, word, 8); break;
    case 's': vec_put(p->s, &set, space, 20); break;
    default: {
        size_t from = p->pos + 1;
        const char *end =
            peek(p) == '{' ? memchr(p->text.p + p->pos, '}', p->text.n - p->pos) : NULL;
        struct str name = { p->text.p + from, end ? (size_t)(end - p->text.p) - from : 0 };
        if (!end || !unicode_property(p->s, name, &set))
            bad(p, "a property that is not known here");
        else p->pos = from + name.n + 1;
    }
    }
    if (c < 'a') set_negate(p->s, &set);
    vec_put(p->s, v, set.w, set.n);
    vec_free(&set);
    return true;
}

/* After a backslash: an escape that is one code point. */
static uint32_t read_escape(struct parser *p, bool in_class)
{
    static const char from[] = "tnvfr", into[] = "\t\n\v\f\r";
    int c = peek(p);
    const char *found = c > 0 ? strchr(from, c) : NULL;
    if (c < 0) bad(p, "a backslash at the end");
    else if (found && *found) return p->pos++, (uint32_t)into[found - from];
    else if (c == '0' && hex(p->pos + 1 < p->text.n ? p->text.p[p->pos + 1] : 'x') < 0)
        return p->pos++, 0;
    else if (c == 'b' && in_class) return p->pos++, '\b';
    else if (c == 'x') {
        p->pos++;
        int32_t v = read_hex(p, 2);
        if (v >= 0) return (uint32_t)v;
        bad(p, "\\x without two hexadecimal digits");
    } else if (c == 'u') {
        p->pos++;
        return read_unicode(p);
    } else if (c == 'c' && p->pos + 1 < p->text.n && (p->text.p[p->pos + 1] | 0x20) >= 'a' &&
               (p->text.p[p->pos + 1] | 0x20) <= 'z') {
        p->pos += 2;
        return (uint32_t)p->text.p[p->pos - 1] & 31;
    } else if (c >= '0' && c <= '9') bad(p, "a back reference, which no automaton can follow,");
    else if (c == 'b' || c == 'B') bad(p, "a word boundary, which is not supported,");
    else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') bad(p, "an unknown escape");
    else return read_char(p);
    return 0;
}

/* One member of a class: a set (true), or one code point. */
static bool read_member(struct parser *p, struct vec *v, uint32_t *cp)
{
    if (!accept(p, "\\")) {
        *cp = read_char(p);
        return false;
    }
    if (read_class_escape(p, v)) return true;
    *cp = read_escape(p, true);
    return false;
}

static struct tree *new_set(struct parser *p, struct vec *v)
{
    struct tree *t = new_tree(p, T_SET);
    set_tidy(p->s, v);
    if (t) t->set = re_set(p->s, v->w, v->n / 2);
    vec_free(v);
    return t;
}

/* After '['. */
static struct tree *read_class(struct parser *p)
{
    struct vec v = { 0 };
    bool negated = accept(p, "^");
    while (!p->s->status && !accept(p, "]")) {
        uint32_t first = 0, last = 0;
        if (peek(p) < 0) bad(p, "a class without an end");
        else if (!read_member(p, &v, &first)) {
            last = first;
            size_t before = p->pos;
            if (accept(p, "-")) {
                struct vec other = { 0 };
                if (peek(p) == ']' || peek(p) < 0 || read_member(p, &other, &last)) {
                    p->pos = before; /* the minus stands for itself */
                    last = first;
                } else if (last < first) bad(p, "a range that ends before it begins");
                vec_free(&other);
            }
            set_add(p->s, &v, first, last);
        }
    }
    if (negated) set_negate(p->s, &v);
    return new_set(p, &v);
}

static struct tree *read_alternatives(struct parser *p);

/* After '('. */
static struct tree *read_group(struct parser *p)
{
    enum shape shape = T_CAT;
    if (accept(p, "?=")) shape = T_AHEAD;
    else if (accept(p, "?!")) shape = T_NOT_AHEAD;
    else if (accept(p, "?<=") || accept(p, "?<!"))
        return bad(p, "a lookbehind, which is not supported,");
    else if (accept(p, "?<")) {
        while (peek(p) >= 0 && peek(p) != '>') p->pos++;
        if (!accept(p, ">")) return bad(p, "a group's name without an end");
    } else if (!accept(p, "?:") && peek(p) == '?') return bad(p, "an unknown kind of group");
    if (p->depth++ == MAX_NESTING) return bad(p, "too many groups inside one another");
    struct tree *inner = read_alternatives(p);
    p->depth--;
    if (!p->s->status && !accept(p, ")")) bad(p, "a group without an end");
    if (shape == T_CAT || !inner) return inner;
    struct tree *t = new_tree(p, shape);
    if (t) t->child = inner;
    return t;
}

static struct tree *read_atom(struct parser *p)
{
    struct vec v = { 0 };
    if (accept(p, "(")) return read_group(p);
    if (accept(p, "[")) return read_class(p);
    if (accept(p, "^")) return new_tree(p, T_START);
    if (accept(p, "$")) return new_tree(p, T_END);
    if (accept(p, ".")) {
        static const uint32_t ends[] = { '\n', '\n', '\r', '\r', 0x2028, 0x2029 };
        vec_put(p->s, &v, ends, 6);
        set_negate(p->s, &v);
        return new_set(p, &v);
    }
    if (accept(p, "\\")) {
        if (!read_class_escape(p, &v)) {
            uint32_t cp = read_escape(p, false);
            set_add(p->s, &v, cp, cp);
        }
        return new_set(p, &v);
    }
    int c = peek(p);
    if (c == '*' || c == '+' || c == '?') return bad(p, "nothing to repeat");
    uint32_t cp = read_char(p);
    set_add(p->s, &v, cp, cp);
    return new_set(p, &v);
}

static bool read_count(struct parser *p, uint32_t *n)
{
    size_t from = p->pos;
    *n = 0;
    for (; peek(p) >= '0' && peek(p) <= '9'; p->pos++)
        if (*n < MAX_COUNT * 10u) *n = *n * 10 + (uint32_t)(peek(p) - '0');
    return p->pos > from;
}

/* {n}, {n,} or {n,m}; what only looks like it is text. */
static bool read_braces(struct parser *p, uint32_t *least, uint32_t *most)
{
    size_t before = p->pos;
    if (!accept(p, "{")) return false;
    if (read_count(p, least)) {
        *most = *least;
        if (accept(p, ",") && !read_count(p, most)) *most = RE_INF;
        if (accept(p, "}")) return true;
    }
    p->pos = before;
    return false;
}

static struct tree *read_repeated(struct parser *p)
{
    struct tree *t = read_atom(p);
    for (; t && !p->s->status;) {
        uint32_t least = 0, most = RE_INF;
        if (accept(p, "+")) least = 1;
        else if (accept(p, "?")) most = 1;
        else if (!accept(p, "*") && !read_braces(p, &least, &most)) break;
        accept(p, "?");
        if (least > most) return bad(p, "a repetition of more than at most");
        if (least > MAX_COUNT || (most > MAX_COUNT && most != RE_INF))
            return bad(p, "a repetition of more than 100000");
        struct tree *r = new_tree(p, T_REP);
        if (!r) return NULL;
        *r = (struct tree) { T_REP, t->simple, 0, least, most, t, NULL };
        t = r;
    }
    return t;
}

static struct tree *read_sequence(struct parser *p)
{
    struct tree *t = new_tree(p, T_CAT), **tail = t ? &t->child : NULL;
    while (!p->s->status && peek(p) >= 0 && peek(p) != '|' && peek(p) != ')') {
        struct tree *c = read_repeated(p);
        if (!c || p->s->status) return NULL;
        *tail = c;
        tail = &c->next;
        t->simple &= c->simple;
    }
    return t;
}

static struct tree *read_alternatives(struct parser *p)
{
    struct tree *t = new_tree(p, T_ALT), **tail = t ? &t->child : NULL;
    while (!p->s->status) {
        struct tree *c = read_sequence(p);
        if (!c) return NULL;
        *tail = c;
        tail = &c->next;
        t->simple &= c->simple;
        if (!accept(p, "|")) break;
    }
    return t;
}

static struct tree *parse(struct store *s, struct str pattern)
{
    struct parser p = { .s = s, .text = pattern };
    s->work = 0;
    if (pattern.n > MAX_PATTERN) {
        store_fail(s, BZ_ERR_LIMIT, "a pattern of %zu bytes; %d are read", pattern.n, MAX_PATTERN);
        return NULL;
    }
    struct tree *t = read_alternatives(&p);
    if (!s->status && p.pos < pattern.n) bad(&p, "a bracket that closes nothing");
    return s->status ? NULL : t;
}

/* ---- translation ---- */

/* What follows a piece: `at_start` if that stands at the beginning of the text, else `later`. */
struct rest {
    node at_start, later;
};

static node translate(struct store *s, const struct tree *t, struct rest k, bool start);

static node translate_sequence(struct store *s, const struct tree *first, struct rest k, bool start)
{
    /* The pieces in reverse: each one's rest is the translation of those behind it. */
    const struct tree *pieces[256];
    uint32_t n = 0;
    struct rest r = k;
    for (const struct tree *c = first; c; c = c->next) {
        if (n == 256) { /* the others as one more sequence, behind these */
            r.later = translate_sequence(s, c, (struct rest) { k.later, k.later }, false);
            r.at_start = start ? translate_sequence(s, c, k, true) : r.later;
            break;
        }
        pieces[n++] = c;
    }
    while (n-- > 0) {
        node later = translate(s, pieces[n], (struct rest) { r.later, r.later }, false);
        r.at_start = start ? translate(s, pieces[n], r, true) : later;
        r.later = later;
    }
    return start ? r.at_start : r.later;
}

/* Without end: a rule K = rest | piece K. */
static node translate_star(struct store *s, const struct tree *t, struct rest k, bool start)
{
    node rule = re_rule(s, re_nullable(s, k.later), true);
    struct rest again = { rule, rule };
    node more = translate(s, t->child, again, false);
    re_rule_is(s, rule, re_alt2(s, k.later, more == rule ? 0 : more));
    if (!start) return rule;
    return re_alt2(s, k.at_start, translate(s, t->child, again, true));
}

static node translate_repeat(struct store *s, const struct tree *t, struct rest k, bool start)
{
    uint32_t copies = t->most == RE_INF ? t->least : t->most;
    if (copies > MAX_COPIES) {
        store_fail(s, BZ_ERR_UNSUPPORTED,
                   "a group with an assertion repeated more than %d times is not supported",
                   MAX_COPIES);
        return 0;
    }
    struct rest r = k;
    if (t->most == RE_INF) {
        node later = translate_star(s, t, (struct rest) { k.later, k.later }, false);
        r.at_start = start ? translate_star(s, t, k, true) : later;
        r.later = later;
    }
    for (uint32_t i = copies; i > 0; i--) {
        bool optional = i > t->least;
        node later = translate(s, t->child, (struct rest) { r.later, r.later }, false);
        node first = start ? translate(s, t->child, r, true) : later;
        r.later = optional ? re_alt2(s, later, k.later) : later;
        r.at_start = optional ? re_alt2(s, first, k.at_start) : first;
    }
    return start ? r.at_start : r.later;
}

static node translate(struct store *s, const struct tree *t, struct rest k, bool start)
{
    node all = re_any_text(s), follows = start ? k.at_start : k.later, x;
    if (s->work++ == MAX_WORK) store_fail(s, BZ_ERR_LIMIT, "the pattern is too complicated");
    if (s->status) return 0;
    if (t->simple) {
        x = tree_simple(s, t);
        if (!start || k.at_start == k.later || !re_nullable(s, x)) return re_cat(s, x, k.later);
        node some = re_and2(s, x, re_rep(s, re_any(s), 1, RE_INF));
        return re_alt2(s, k.at_start, re_cat(s, some, k.later));
    }
    switch (t->shape) {
    case T_START: return start ? k.at_start : 0;
    case T_END: return re_nullable(s, follows) ? re_rep(s, 0, 0, 1) : 0;
    case T_AHEAD:
    case T_NOT_AHEAD:
        x = translate(s, t->child, (struct rest) { all, all }, start);
        return re_and2(s, t->shape == T_AHEAD ? x : re_not(s, x), follows);
    case T_REP: return translate_repeat(s, t, k, start);
    case T_CAT: return translate_sequence(s, t->child, k, start);
    default:
        x = 0;
        for (const struct tree *c = t->child; c; c = c->next)
            x = re_alt2(s, x, translate(s, c, k, start));
        return x;
    }
}

node regex_search(struct store *s, struct str pattern)
{
    const struct tree *t = parse(s, pattern);
    if (!t) return 0;
    node all = re_any_text(s);
    struct rest k = { all, all };
    node here = translate(s, t, k, true);
    node later = t->simple || here == all ? here : translate(s, t, k, false);
    bool simple = t->simple;
    arena_reset(&s->trees);
    if (here == all || (simple && re_nullable(s, later))) return all;
    if (later == here) return re_cat(s, all, here);
    return re_alt2(s, here, re_cat(s, re_rep(s, re_any(s), 1, RE_INF), later));
}

node regex_whole(struct store *s, struct str pattern)
{
    const struct tree *t = parse(s, pattern);
    node end = re_rep(s, 0, 0, 1);
    node x = t ? translate(s, t, (struct rest) { end, end }, true) : 0;
    arena_reset(&s->trees);
    return x;
}
