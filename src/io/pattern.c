/* pattern.c - owns the small regular expressions of pattern.h.
 *
 * There is no backtracking. A piece of the pattern maps the set of text positions before it to the
 * set after it; a star is the closure of that map. The pattern is interpreted where it stands: a
 * loop goes back to the start of its piece. Hostile patterns meet a depth and a step limit.
 */
#include "io/pattern.h"

#include "io/quote.h"

#define MAX_TEXT  254 /* positions 0..n and byte values both fit 256 bits */
#define MAX_DEPTH 16
#define MAX_STEPS 20000u

/* 256 bits: positions in the text, or a class of bytes. */
struct set {
    uint64_t bits[4];
};

struct matcher {
    struct str pattern, text;
    size_t at; /* in the pattern */
    uint32_t steps;
    uint64_t work; /* steps, and the positions that they looked at */
    bool bad;      /* the pattern is outside the language, or too much work */
};

static void set_add(struct set *s, size_t i)
{
    s->bits[i / 64] |= (uint64_t)1 << (i % 64);
}

static bool set_has(const struct set *s, size_t i)
{
    return s->bits[i / 64] >> (i % 64) & 1;
}

/* *to grows by `from`; returns what was new. */
static struct set set_join(struct set *to, struct set from)
{
    for (int i = 0; i < 4; i++) {
        from.bits[i] &= ~to->bits[i];
        to->bits[i] |= from.bits[i];
    }
    return from;
}

static bool set_empty(struct set s)
{
    return !(s.bits[0] | s.bits[1] | s.bits[2] | s.bits[3]);
}

static void set_flip(struct set *s)
{
    for (int i = 0; i < 4; i++) s->bits[i] = ~s->bits[i];
}

static void add_range(struct set *s, int from, int to)
{
    for (int c = from; c <= to; c++) set_add(s, (size_t)c);
}

/* The character at the cursor, or -1 at the end. */
static int peek(const struct matcher *m)
{
    return m->at < m->pattern.n ? (unsigned char)m->pattern.p[m->at] : -1;
}

static bool accept(struct matcher *m, char c)
{
    if (peek(m) != (unsigned char)c) return false;
    m->at++;
    return true;
}

/* What follows a backslash, added to *s. */
static void read_escape(struct matcher *m, struct set *s)
{
    struct set class = { { 0 } };
    int c = peek(m), kind = c | 0x20; /* lower case */
    m->at++;
    bool letter = (kind >= 'a' && kind <= 'z') || (c >= '0' && c <= '9');
    if (c < 0 || (letter && kind != 'd' && kind != 'w' && kind != 's')) {
        m->bad = true;
        return;
    }
    if (!letter) set_add(&class, (size_t)c);
    if (letter && kind != 's') add_range(&class, '0', '9');
    if (letter && kind == 'w') {
        add_range(&class, 'a', 'z');
        add_range(&class, 'A', 'Z');
        set_add(&class, '_');
    }
    if (letter && kind == 's') {
        add_range(&class, '\t', '\r');
        set_add(&class, ' ');
    }
    if (letter && c != kind) set_flip(&class); /* \D \W \S */
    set_join(s, class);
}

/* The rest of a "[...]" after its bracket. A ']' that comes first is a member. */
static struct set read_class(struct matcher *m)
{
    struct set s = { { 0 } };
    bool negated = accept(m, '^');
    for (bool first = true; first || peek(m) != ']'; first = false) {
        int from = peek(m);
        if (from < 0) {
            m->bad = true;
            return s;
        }
        m->at++;
        if (from == '\\') {
            read_escape(m, &s);
        } else if (peek(m) == '-' && m->at + 1 < m->pattern.n && m->pattern.p[m->at + 1] != ']') {
            int to = (unsigned char)m->pattern.p[m->at + 1];
            m->at += 2;
            if (to < from || to == '\\') m->bad = true;
            add_range(&s, from, to);
        } else {
            set_add(&s, (size_t)from);
        }
    }
    m->at++;
    if (negated) set_flip(&s);
    return s;
}

static struct set step(struct matcher *m, struct set in, struct set class)
{
    struct set out = { { 0 } };
    if (set_empty(in)) return out;
    m->work += m->text.n;
    for (size_t i = 0; i < m->text.n; i++)
        if (set_has(&in, i) && set_has(&class, (unsigned char)m->text.p[i])) set_add(&out, i + 1);
    return out;
}

static struct set alternation(struct matcher *m, struct set in, int depth);

static struct set group(struct matcher *m, struct set in, int depth)
{
    if (accept(m, '?') && !accept(m, ':')) m->bad = true; /* look-arounds, names, flags */
    struct set out = alternation(m, in, depth + 1);
    if (!accept(m, ')')) m->bad = true;
    return out;
}

static struct set atom(struct matcher *m, struct set in, int depth)
{
    struct set class = { { 0 } }, out = { { 0 } };
    size_t edge = m->pattern.p[m->at] == '^' ? 0 : m->text.n;
    if (++m->steps > MAX_STEPS) m->bad = true;
    m->work++;
    int c = peek(m);
    m->at++;
    switch (c) {
    case '(': return group(m, in, depth);
    case '^':
    case '$':
        if (set_has(&in, edge)) set_add(&out, edge);
        return out;
    case '[': class = read_class(m); break;
    case '\\': read_escape(m, &class); break;
    case '.':
        set_add(&class, '\n');
        set_flip(&class);
        break;
    case '*':
    case '+':
    case '?':
    case '{':
    case '}': m->bad = true; break;
    default: set_add(&class, (size_t)c);
    }
    return step(m, in, class);
}

/* An atom and the sign behind it. */
static struct set repeat(struct matcher *m, struct set in, int depth)
{
    size_t start = m->at;
    struct set out = atom(m, in, depth);
    size_t end = m->at;
    int sign = peek(m);
    if (sign != '*' && sign != '+' && sign != '?') return out;
    if (sign != '?') {
        for (struct set fresh = out; !m->bad && !set_empty(fresh);) {
            m->at = start;
            fresh = set_join(&out, atom(m, fresh, depth));
        }
    }
    if (sign != '+') set_join(&out, in);
    m->at = end + 1;
    accept(m, '?'); /* lazy: the same texts match */
    return out;
}

static struct set alternation(struct matcher *m, struct set in, int depth)
{
    struct set out = { { 0 } };
    if (depth > MAX_DEPTH) m->bad = true;
    do {
        struct set now = in;
        while (!m->bad && peek(m) >= 0 && peek(m) != '|' && peek(m) != ')')
            now = repeat(m, now, depth);
        set_join(&out, now);
    } while (!m->bad && accept(m, '|'));
    return out;
}

enum bz_status pattern_match_tail(bool *out, struct str pattern, struct str path, uint64_t *work,
                                  struct bz_err *err)
{
    struct matcher m = { .pattern = pattern, .text = path };
    struct set starts = { { 1 } };
    if (path.n > MAX_TEXT)
        return fail(err, BZ_ERR_LIMIT, "the module path %s is too long", quote(path).z);
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] == '.') set_add(&starts, i + 1);
    struct set ends = alternation(&m, starts, 0);
    *work += m.work;
    if (m.bad || m.at != pattern.n)
        return fail(err, BZ_ERR_UNSUPPORTED, "the pattern \"%s\" is not one that Bezel reads",
                    quote(pattern).z);
    *out = set_has(&ends, path.n);
    return BZ_OK;
}
