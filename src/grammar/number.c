/* number.c - bounds and multiples as automata over decimal digits.
 *
 * RE_CMP reads a number beside its bound: while the whole parts are read, only their lengths and
 * their first difference are known. RE_MOD keeps a remainder. Both take the form of the number for
 * granted: they stand in a conjunction with number_all.
 */
#include "grammar/number.h"

#include "grammar/regex.h"

enum { MAX_DIGITS = 1200, MAX_FEW = 40 /* numbers that are written in one spelling */ };

enum { MAX_FINITE = 308 }; /* digits of the whole part of a double */

static node compiled(struct store *s, const char *pattern)
{
    return regex_whole(s, str_of(pattern));
}

node number_all(struct store *s)
{
    if (!s->number) s->number = compiled(s, "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?");
    return s->number;
}

node number_integer(struct store *s, bool plain)
{
    return compiled(s, plain ? "-?(?:0|[1-9][0-9]*)" : "-?(?:0|[1-9][0-9]*)(?:\\.0+)?");
}

node number_canonical(struct store *s)
{
    return compiled(s, "0|-?(?:0\\.[0-9]*[1-9]|[1-9][0-9]*(?:\\.[0-9]*[1-9])?)");
}

node number_exponents(struct store *s, unsigned forms)
{
    static const char *const tiny = "[1-9](?:\\.[0-9]+)?[eE]-(?:0?[5-9]|[1-9][0-9]|[12][0-9]{2})",
                             *const huge = "[1-9](?:\\.[0-9]{1,16})?[eE]\\+?(?:1[6-9]|[2-9][0-9]|"
                                           "[12][0-9]{2})";
    node x = 0, minus = re_range(s, '-', '-');
    if (forms & EXP_ANY) x = compiled(s, "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?[eE][+-]?[0-9]{1,2}");
    if (forms & EXP_TINY) x = re_alt2(s, x, compiled(s, tiny));
    if (forms & EXP_TINY_NEG) x = re_alt2(s, x, re_cat(s, minus, compiled(s, tiny)));
    if (forms & EXP_HUGE) x = re_alt2(s, x, compiled(s, huge));
    if (forms & EXP_HUGE_NEG) x = re_alt2(s, x, re_cat(s, minus, compiled(s, huge)));
    return x;
}

/* ---- decimals ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits as written, and where the point stands among them once the exponent is applied. */
static bool read_digits(struct decimal *d, struct str t, int64_t *point)
{
    size_t i = 0;
    bool seen_point = false;
    int64_t exponent = 0;
    d->negative = t.n && t.p[0] == '-';
    for (i = d->negative; i < t.n && t.p[i] != 'e' && t.p[i] != 'E'; i++) {
        if (t.p[i] == '.') seen_point = true;
        else if (is_digit(t.p[i])) {
            buf_putc(&d->digits, t.p[i]);
            if (!seen_point) ++*point;
        } else return false;
    }
    bool minus = i + 1 < t.n && t.p[i + 1] == '-';
    for (i++; i < t.n && exponent < 100000; i++)
        if (is_digit(t.p[i])) exponent = 10 * exponent + (t.p[i] - '0');
    *point += minus ? -exponent : exponent;
    return d->digits.n > 0 && !d->digits.failed;
}

bool decimal_read(struct decimal *d, struct str text)
{
    struct decimal raw = { 0 };
    int64_t point = 0;
    *d = (struct decimal) { 0 };
    bool ok = read_digits(&raw, text, &point);
    size_t from = 0, to = raw.digits.n;
    while (from < to && raw.digits.data[from] == '0') from++;
    while (to > from && raw.digits.data[to - 1] == '0') to--;
    int64_t whole = point - (int64_t)from, n = (int64_t)(to - from);
    if (n == 0) whole = 0;
    ok = ok && whole <= MAX_DIGITS && n - whole <= MAX_DIGITS && whole >= -MAX_DIGITS;
    if (ok) {
        for (int64_t i = whole < 1 ? whole - 1 : 0; i < (n > whole ? n : whole); i++)
            buf_putc(&d->digits, i >= 0 && i < n ? raw.digits.data[from + (size_t)i] : '0');
        d->n_whole = whole < 1 ? 1 : (size_t)whole;
        d->negative = raw.negative && n > 0;
        ok = !d->digits.failed;
    }
    bool failed = raw.digits.failed || d->digits.failed;
    buf_free(&raw.digits);
    if (!ok) buf_free(&d->digits);
    d->digits.failed = failed;
    return ok;
}

static void refuse(struct store *s, const struct decimal *d, struct str text)
{
    if (d->digits.failed) store_fail(s, BZ_ERR_MEMORY, "out of memory for a grammar");
    else store_fail(s, BZ_ERR_LIMIT, "the number %.*s has too many digits", STR_ARG(text));
}

/* Read a number of the schema, or fail. */
static bool read_bound(struct store *s, struct decimal *d, struct str text)
{
    if (!decimal_read(d, text)) {
        refuse(s, d, text);
        return false;
    }
    uint32_t behind = (uint32_t)(d->digits.n - d->n_whole);
    if (d->n_whole > s->n_whole) s->n_whole = (uint32_t)d->n_whole;
    if (behind > s->n_fraction) s->n_fraction = behind;
    return true;
}

static bool is_zero(const struct decimal *d)
{
    return d->digits.n == 1 && d->digits.data[0] == '0';
}

/* ---- RE_CMP ---- */

/* words: the bound (a STRING of its digits), where its point is and two flags, the state, 0.
 * State: phase, sign of the text, how its digits so far compare, and how many there were. */
enum { BOUND_NEGATIVE = 1, BOUND_STRICT = 2, BOUND_FLAGS = 2 };
enum phase { AT_START, AFTER_SIGN, IN_WHOLE, IN_FRACTION };
enum order { EQUAL, LESS, GREATER };

struct cmp {
    struct str digits;
    uint32_t n_whole;
    bool bound_negative, strictly;
    enum phase phase;
    bool negative;
    enum order order;
    uint32_t n; /* digits read: before the point, or behind it */
};

static struct cmp cmp_read(const struct store *s, const uint32_t *w)
{
    return (struct cmp) { store_text(s, w[0]),         w[1] >> BOUND_FLAGS,
                          w[1] & BOUND_NEGATIVE,       (w[1] & BOUND_STRICT) != 0,
                          (enum phase)(w[2] & 3),      w[2] >> 2 & 1,
                          (enum order)(w[2] >> 3 & 3), w[2] >> 5 };
}

/* How the magnitude compares if the text ends here. */
static enum order magnitude(const struct cmp *c)
{
    if (c->phase == IN_WHOLE && c->n != c->n_whole) return c->n < c->n_whole ? LESS : GREATER;
    if (c->order != EQUAL) return c->order;
    size_t used = c->n_whole + (c->phase == IN_FRACTION ? c->n : 0);
    return used < c->digits.n ? LESS : EQUAL;
}

static bool zero_bound(const struct cmp *c)
{
    return c->digits.n == 1 && c->digits.p[0] == '0';
}

/* Is the number large enough, if its magnitude compares so with the bound's? */
static bool large_enough(const struct cmp *c, enum order m)
{
    if (c->negative && !c->bound_negative) return zero_bound(c) && m == EQUAL && !c->strictly;
    if (!c->negative && c->bound_negative) return true;
    if (m == EQUAL) return !c->strictly;
    return m == (c->negative ? LESS : GREATER);
}

/* Can nothing that follows change the answer? */
static bool is_decided(const struct cmp *c)
{
    if (c->phase < IN_WHOLE) return false;
    if (!c->negative && c->bound_negative) return true;
    if (c->negative && !c->bound_negative) return !zero_bound(c) || c->order == GREATER;
    if (c->phase == IN_WHOLE) return c->n > c->n_whole;
    return c->order != EQUAL;
}

static node cmp_step(struct store *s, const uint32_t *w, uint32_t cp)
{
    struct cmp c = cmp_read(s, w);
    if (cp == '/') return 0;
    if (cp == '-') {
        if (c.phase != AT_START) return 0;
        c.phase = AFTER_SIGN;
        c.negative = true;
    } else if (cp == '.') {
        if (c.phase != IN_WHOLE) return 0;
        c.order = c.n == c.n_whole ? c.order : c.n < c.n_whole ? LESS : GREATER;
        c.phase = IN_FRACTION;
        c.n = 0;
    } else {
        if (c.phase < IN_WHOLE) c.phase = IN_WHOLE;
        size_t at = c.n + (c.phase == IN_FRACTION ? c.n_whole : 0);
        bool has = c.phase == IN_FRACTION ? at < c.digits.n : c.n < c.n_whole;
        char other = has ? c.digits.p[at] : '0';
        if (c.order == EQUAL && (char)cp != other) c.order = (char)cp < other ? LESS : GREATER;
        if (c.phase == IN_FRACTION ? has : c.n <= c.n_whole) c.n++;
    }
    if (is_decided(&c)) return large_enough(&c, magnitude(&c)) ? re_any_text(s) : 0;
    uint32_t state =
        (uint32_t)c.phase | (uint32_t)c.negative << 2 | (uint32_t)c.order << 3 | c.n << 5;
    return re_cmp(s, (uint32_t[]) { w[0], w[1], state, 0 });
}

static node cmp_start(struct store *s, const struct decimal *d, bool strictly)
{
    uint32_t flags = (d->negative ? BOUND_NEGATIVE : 0u) | (strictly ? BOUND_STRICT : 0u);
    node digits = store_string(s, buf_str(&d->digits));
    return re_cmp(s, (uint32_t[]) { digits, (uint32_t)d->n_whole << BOUND_FLAGS | flags, 0, 0 });
}

static bool cmp_nullable(const struct store *s, const uint32_t *w)
{
    struct cmp c = cmp_read(s, w);
    return c.phase >= IN_WHOLE && large_enough(&c, magnitude(&c));
}

static node at_least(struct store *s, struct str bound, bool strictly)
{
    struct decimal d;
    if (!read_bound(s, &d, bound)) return 0;
    node x = cmp_start(s, &d, strictly);
    buf_free(&d.digits);
    return x;
}

/* ---- bounds ---- */

/* The forms of exponents of which every number is on the right side of a bound: above it, or with
 * `below` under it. */
static unsigned forms_beside(struct store *s, struct str bound, bool below, bool strictly)
{
    static const struct {
        unsigned form;
        const char *least, *most; /* of its numbers; NULL: there is none */
        bool reached;             /* there is such a number */
    } forms[] = { { EXP_TINY, "0", "0.0001", false },
                  { EXP_TINY_NEG, "-0.0001", "0", false },
                  { EXP_HUGE, "10000000000000000", NULL, true },
                  { EXP_HUGE_NEG, NULL, "-10000000000000000", true } };
    unsigned kept = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *edge = below ? forms[i].most : forms[i].least;
        if (!edge) continue;
        bool apart = strictly && forms[i].reached; /* the edge itself must not be the bound */
        bool above = re_matches(s, at_least(s, bound, below ? !apart : apart), str_of(edge));
        if (above != below) kept |= forms[i].form;
    }
    return kept;
}

node number_at_least(struct store *s, struct str bound, bool strictly, unsigned *forms)
{
    *forms &= forms_beside(s, bound, false, strictly);
    return re_and2(s, number_all(s), at_least(s, bound, strictly));
}

node number_at_most(struct store *s, struct str bound, bool strictly, unsigned *forms)
{
    *forms &= forms_beside(s, bound, true, strictly);
    return re_and2(s, number_all(s), re_not(s, at_least(s, bound, !strictly)));
}

node number_equal(struct store *s, struct str value)
{
    struct decimal d;
    if (!read_bound(s, &d, value)) return 0;
    struct str whole = { d.digits.data, d.n_whole },
               rest = { d.digits.data + d.n_whole, d.digits.n - d.n_whole };
    node zeros = re_rep(s, re_range(s, '0', '0'), rest.n ? 0 : 1, RE_INF);
    node fraction = re_cat(s, re_range(s, '.', '.'), re_cat(s, re_literal(s, rest), zeros));
    if (!rest.n) fraction = re_rep(s, fraction, 0, 1);
    node x = re_cat(s, re_literal(s, whole), fraction), minus = re_range(s, '-', '-');
    if (d.negative) x = re_cat(s, minus, x);
    else if (is_zero(&d)) x = re_cat(s, re_rep(s, minus, 0, 1), x);
    buf_free(&d.digits);
    return x;
}

/* ---- RE_MOD ---- */

/* words: the divisor as a whole number, the remainder so far, digits that are still to come behind
 * the point, 1 once the point was read. The divisor is w[0] / 10^(those digits). */

static uint64_t scaled(const uint32_t *w, uint32_t remainder)
{
    uint64_t r = remainder;
    for (uint32_t i = 0; i < w[2] && r; i++) r = r * 10 % w[0];
    return r;
}

static node mod_step(struct store *s, const uint32_t *w, uint32_t cp)
{
    if (cp == '-') return w[3] ? 0 : re_mod(s, w);
    if (cp == '/') return 0;
    if (cp == '.') return w[3] ? 0 : re_mod(s, (uint32_t[]) { w[0], w[1], w[2], 1 });
    if (w[3] && w[2] == 0) return cp == '0' ? re_mod(s, w) : 0;
    uint32_t r = (uint32_t)(((uint64_t)w[1] * 10 + (cp - '0')) % w[0]);
    return re_mod(s, (uint32_t[]) { w[0], r, w[2] - w[3], w[3] });
}

node number_multiple(struct store *s, struct str of)
{
    struct decimal d;
    if (!decimal_read(&d, of)) {
        if (d.digits.failed) refuse(s, &d, of);
        return 0;
    }
    uint64_t m = 0;
    for (size_t i = 0; i < d.digits.n && m < UINT32_MAX; i++)
        m = 10 * m + (uint64_t)(d.digits.data[i] - '0');
    bool ok = m > 0 && m < UINT32_MAX && !d.negative;
    uint32_t behind = (uint32_t)(d.digits.n - d.n_whole);
    buf_free(&d.digits);
    if (!ok) return 0;
    if (behind > s->n_fraction) s->n_fraction = behind;
    return re_and2(s, number_all(s), re_mod(s, (uint32_t[]) { (uint32_t)m, 0, behind, 0 }));
}

/* ---- writing ---- */

/* What may follow n digits of a whole part: "." and other digits, or nothing. */
static node written_end(struct store *s, uint32_t n, bool whole, bool long_ones)
{
    node nothing = re_rep(s, 0, 0, 1);
    uint32_t most = n < MAX_SIGNIFICANT ? MAX_SIGNIFICANT - n : 0;
    if (long_ones && most < s->n_fraction + 1) most = s->n_fraction + 1;
    if (whole || most == 0) return nothing;
    node digits = re_rep(s, re_range(s, '0', '9'), 1, most);
    return re_alt2(s, nothing, re_cat(s, re_range(s, '.', '.'), digits));
}

/* Numbers whose whole part has at most `most` digits. */
static node written(struct store *s, uint32_t most, bool whole, bool long_ones)
{
    node rest = 0;
    for (uint32_t n = most; n > 0; n--)
        rest =
            re_alt2(s, re_cat(s, re_range(s, '0', '9'), rest), written_end(s, n, whole, long_ones));
    node zero = re_cat(s, re_range(s, '0', '0'), written_end(s, 0, whole, long_ones));
    node x = re_alt2(s, zero, re_cat(s, re_range(s, '1', '9'), rest));
    return re_cat(s, re_rep(s, re_range(s, '-', '-'), 0, 1), x);
}

/* Does it matter what its numbers are multiples of? Perhaps, where the expression is large. */
static bool has_mod(const struct store *s, node x, unsigned *budget)
{
    enum kind kind = node_kind(s, x);
    if (*budget == 0 || kind == RE_MOD) return true;
    --*budget;
    if (kind != RE_AND && kind != RE_ALT && kind != RE_NOT) return false;
    for (uint32_t i = 0; i < node_n(s, x); i++)
        if (has_mod(s, node_words(s, x)[i], budget)) return true;
    return false;
}

/* Are all its numbers whole? A short search: if it gives up, they have a point and zeros. */
static bool is_whole(struct store *s, node x)
{
    uint32_t limit = s->max_search;
    s->max_search = 500;
    bool whole = !re_live(s, re_and2(s, x, re_not(s, number_integer(s, false))));
    s->max_search = limit;
    return whole;
}

node number_written(struct store *s, node x)
{
    node integer = number_integer(s, false);
    unsigned budget = 100;
    if (x == 0) return 0;
    if (x == number_all(s)) return written(s, MAX_WHOLE, false, false);
    if (x == re_and2(s, number_all(s), integer)) return written(s, MAX_WHOLE, true, false);
    node few = re_and2(s, x, number_canonical(s));
    if (re_count(s, few, MAX_FEW + 1) <= MAX_FEW) return few;
    bool whole = is_whole(s, x);
    uint32_t most = has_mod(s, x, &budget) ? MAX_SIGNIFICANT : MAX_WHOLE;
    node y = re_and2(s, x, written(s, most, whole, false));
    if (re_live(s, y)) return y;
    most = s->n_whole + MAX_WHOLE < MAX_FINITE ? s->n_whole + MAX_WHOLE : MAX_FINITE;
    return re_and2(s, x, written(s, most, whole, true));
}

/* ---- both as expressions ---- */

node number_step(struct store *s, node x, uint32_t cp)
{
    const uint32_t *w = node_words(s, x);
    return node_kind(s, x) == RE_MOD ? mod_step(s, w, cp) : cmp_step(s, w, cp);
}

static node put(struct store *s, enum kind kind, const uint32_t w[4], bool nullable)
{
    node x = store_put(s, kind, w, 4);
    if (s->status) return 0;
    s->nodes[x].flags |= RE_READY | (nullable ? RE_NULLABLE | RE_LIVE : RE_HARD);
    return x;
}

node re_mod(struct store *s, const uint32_t w[4])
{
    if (w[3] && w[2] == 0 && w[1] != 0) return 0; /* only zeros could follow */
    return put(s, RE_MOD, w, scaled(w, w[1]) == 0);
}

node re_cmp(struct store *s, const uint32_t w[4])
{
    return put(s, RE_CMP, w, cmp_nullable(s, w));
}
