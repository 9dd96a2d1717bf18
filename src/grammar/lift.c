/* lift.c - UTF-8 and JSON's escapes, byte by byte.
 *
 * words of a LIFTED node: kind, expression, mode. A mode is 0 between code points, else its kind
 * and what is known of the code point so far.
 */
#include "grammar/lift.h"

enum mode {
    M_BORDER,
    M_PART, /* the bits so far, and how many bytes are to come (rest << 24) */
    M_TAIL, /* any code point of these bytes leads to the expression, which is the target already */
    M_ESCAPE, /* after a backslash */
    M_HEX,    /* after \u: the digits so far, and how many (n << 16) */
    M_HIGH,   /* after the first half of a pair: its ten bits; a backslash must come */
    M_HIGH_U, /* then a u */
    M_LOW,    /* then digits: ten bits << 14 | how many << 12 | the digits */
};
enum { MODE_SHIFT = 28, MAX_ROWS = MAX_NODES >> 8 };

static node state(struct store *s, const uint32_t *from, node x, enum mode m, uint32_t value)
{
    return store_put(s, LIFTED, (uint32_t[]) { from[0], x, (uint32_t)m << MODE_SHIFT | value }, 3);
}

node lift_start(struct store *s, enum lift kind, node x)
{
    return store_put(s, LIFTED, (uint32_t[]) { (uint32_t)kind, x, 0 }, 3);
}

static bool live(struct store *s, node x)
{
    return x != 0 && (node_kind(s, x) == RE_TUPLE || re_live(s, x));
}

static uint32_t lead_to(struct store *s, const uint32_t *w, node x)
{
    return live(s, x) ? state(s, w, x, M_BORDER, 0) : LEADS_NOWHERE;
}

static uint32_t read_cp(struct store *s, const uint32_t *w, uint32_t cp)
{
    return lead_to(s, w, re_step(s, w[1], cp));
}

/* Can one of these code points be read? *only: where all of them lead, or 0. */
static bool can_read(struct store *s, node x, uint32_t first, uint32_t last, node *only)
{
    const struct steps *l = re_steps(s, x);
    bool any = false;
    *only = 0;
    for (uint32_t i = 0; l && i < l->n && l->at[i].first <= last; i++) {
        if (l->at[i].last < first || !live(s, l->at[i].to)) continue;
        any = true;
        if (l->at[i].first <= first && l->at[i].last >= last) *only = l->at[i].to;
    }
    return any;
}

/* ---- what a mode can still become ---- */

static const char short_names[] = "bfnrt", short_values[] = "\b\f\n\r\t";

enum { FIRST_HALF = 0xd800, SECOND_HALF = 0xdc00, END_OF_HALVES = 0xe000 };

/* Those of first..last that are code points: halves of pairs are none. */
static void add_range(struct range *out, uint32_t *n, uint32_t first, uint32_t last)
{
    if (first < FIRST_HALF && last >= FIRST_HALF) {
        add_range(out, n, first, FIRST_HALF - 1);
        first = FIRST_HALF;
    }
    if (first >= FIRST_HALF && first < END_OF_HALVES) first = END_OF_HALVES;
    if (first <= last) out[(*n)++] = (struct range) { first, last };
}

/* `value` has the bits of some bytes, `rest` are to come. Long forms of short code points are not
 * allowed, so some second bytes have limits of their own. */
static void add_utf8(struct range *out, uint32_t *n, uint32_t value, uint32_t rest)
{
    static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
    uint32_t first = value << 6 * rest, last = first | ((1u << 6 * rest) - 1);
    bool lead = value < 0x10;
    if (lead && rest > 1 && first < least[rest]) first = least[rest];
    add_range(out, n, first, last < LAST_CP ? last : LAST_CP);
}

/* Those of first..last that LIFT_PLAIN writes as \u00XX: control characters without a short
 * name. */
static void add_control(struct range *out, uint32_t *n, uint32_t first, uint32_t last)
{
    static const struct range control[] = { { 0, 7 }, { 11, 11 }, { 14, 31 } };
    for (uint32_t i = 0; i < sizeof control / sizeof *control; i++) {
        struct range r = control[i];
        if (r.first < first) r.first = first;
        if (r.last > last) r.last = last;
        if (r.first <= r.last) out[(*n)++] = r;
    }
}

/* After n digits of \uXXXX: by itself, or as the first half of a pair. */
static void add_hex(struct range *out, uint32_t *n_out, enum lift kind, uint32_t n, uint32_t value)
{
    uint32_t first = value << 4 * (4 - n), last = first | ((1u << 4 * (4 - n)) - 1);
    if (kind == LIFT_PLAIN) {
        add_control(out, n_out, first, last);
        return;
    }
    add_range(out, n_out, first, last);
    if (first < FIRST_HALF) first = FIRST_HALF;
    if (last >= SECOND_HALF) last = SECOND_HALF - 1;
    if (first <= last)
        add_range(out, n_out, 0x10000 + ((first & 0x3ff) << 10),
                  0x10000 + ((last & 0x3ff) << 10) + 0x3ff);
}

/* After n digits of a pair's second half. */
static void add_low(struct range *out, uint32_t *n_out, uint32_t high, uint32_t n, uint32_t value)
{
    uint32_t first = value << 4 * (4 - n), last = first | ((1u << 4 * (4 - n)) - 1);
    if (first < SECOND_HALF) first = SECOND_HALF;
    if (last >= END_OF_HALVES) last = END_OF_HALVES - 1;
    if (first <= last)
        add_range(out, n_out, 0x10000 + (high << 10) + (first & 0x3ff),
                  0x10000 + (high << 10) + (last & 0x3ff));
}

static uint32_t find_pending(enum lift kind, uint32_t mode, struct range *out)
{
    uint32_t value = mode & ((1u << MODE_SHIFT) - 1), n = 0;
    switch ((enum mode)(mode >> MODE_SHIFT)) {
    case M_BORDER:
    case M_TAIL: break;
    case M_PART: add_utf8(out, &n, value & 0xffffff, value >> 24); break;
    case M_ESCAPE:
        if (kind == LIFT_PLAIN) {
            out[n++] = (struct range) { 0, 0x1f };
            out[n++] = (struct range) { '"', '"' };
            out[n++] = (struct range) { '\\', '\\' };
        } else {
            add_range(out, &n, 0, LAST_CP);
        }
        break;
    case M_HEX: add_hex(out, &n, kind, value >> 16, value & 0xffff); break;
    case M_HIGH:
    case M_HIGH_U: add_low(out, &n, value, 0, 0); break;
    case M_LOW: add_low(out, &n, value >> 14, value >> 12 & 3, value & 0xfff); break;
    }
    return n;
}

uint32_t lift_pending(const struct store *s, node x, struct range out[MAX_PENDING])
{
    const uint32_t *w = node_words(s, x);
    return find_pending((enum lift)w[0], w[2], out);
}

/* In the middle of a code point: there, unless none of those that it can become can be read. */
static uint32_t begin(struct store *s, const uint32_t *w, enum mode m, uint32_t value)
{
    struct range r[MAX_PENDING];
    uint32_t n = find_pending((enum lift)w[0], (uint32_t)m << MODE_SHIFT | value, r);
    node only;
    for (uint32_t i = 0; i < n; i++)
        if (can_read(s, w[1], r[i].first, r[i].last, &only)) return state(s, w, w[1], m, value);
    return LEADS_NOWHERE;
}

/* ---- UTF-8 ---- */

/* Where all that can come leads to one place, that place is known already. */
static uint32_t part(struct store *s, const uint32_t *w, uint32_t value, uint32_t rest)
{
    struct range r[MAX_PENDING];
    uint32_t n = 0, first = value << 6 * rest, last = first | ((1u << 6 * rest) - 1);
    node only;
    add_utf8(r, &n, value, rest);
    bool whole = n == 1 && r[0].first == first && r[0].last == last;
    if (whole && can_read(s, w[1], first, last, &only) && only)
        return state(s, w, only, M_TAIL, rest);
    return begin(s, w, M_PART, rest << 24 | value);
}

static uint32_t read_lead(struct store *s, const uint32_t *w, unsigned byte)
{
    if (byte < 0xc2 || byte > 0xf4) return LEADS_NOWHERE;
    uint32_t rest = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    return part(s, w, byte & (0x3fu >> rest), rest);
}

static uint32_t read_part(struct store *s, const uint32_t *w, uint32_t mode, unsigned byte)
{
    uint32_t rest = mode >> 24 & 3, before = mode & 0xffffff, value = before << 6 | (byte & 63);
    if ((byte & 0xc0) != 0x80) return LEADS_NOWHERE;
    if (rest == 3 && (value < 0x10 || value > 0x10f)) return LEADS_NOWHERE;
    if (rest == 2 && before < 0x10 && (value < 0x20 || (value >= 0x360 && value < 0x380)))
        return LEADS_NOWHERE; /* too long, or half of a pair */
    return rest == 1 ? read_cp(s, w, value) : part(s, w, value, rest - 1);
}

static uint32_t read_tail(struct store *s, const uint32_t *w, uint32_t rest, unsigned byte)
{
    if ((byte & 0xc0) != 0x80) return LEADS_NOWHERE;
    return rest == 1 ? state(s, w, w[1], M_BORDER, 0) : state(s, w, w[1], M_TAIL, rest - 1);
}

/* ---- escapes ---- */

static int hex(unsigned c, bool lower_only)
{
    if (c >= '0' && c <= '9') return (int)c - '0';
    if (c >= 'A' && c <= 'F' && !lower_only) return (int)c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? (int)c - 'a' + 10 : -1;
}

static uint32_t read_hex(struct store *s, const uint32_t *w, uint32_t mode, unsigned byte)
{
    int d = hex(byte, w[0] == LIFT_PLAIN);
    uint32_t n = (mode >> 16) + 1, value = (mode & 0xffff) << 4 | (uint32_t)d;
    if (d < 0) return LEADS_NOWHERE;
    if (n < 4) return begin(s, w, M_HEX, n << 16 | value);
    if (value >= FIRST_HALF && value < SECOND_HALF) return begin(s, w, M_HIGH, value & 0x3ff);
    struct range r[MAX_PENDING];
    uint32_t n_pending = 0;
    add_hex(r, &n_pending, (enum lift)w[0], 4, value);
    return n_pending ? read_cp(s, w, value) : LEADS_NOWHERE;
}

static uint32_t read_low(struct store *s, const uint32_t *w, uint32_t mode, unsigned byte)
{
    int d = hex(byte, false);
    uint32_t high = mode >> 14, n = (mode >> 12 & 3) + 1;
    uint32_t value = (mode & 0xfff) << 4 | (uint32_t)d;
    if (d < 0) return LEADS_NOWHERE;
    if (n < 4) return begin(s, w, M_LOW, high << 14 | n << 12 | value);
    return read_cp(s, w, 0x10000 + (high << 10) + (value & 0x3ff));
}

static uint32_t read_escape(struct store *s, const uint32_t *w, unsigned byte)
{
    const char *found = byte ? strchr(short_names, (int)byte) : NULL;
    if (found) return read_cp(s, w, (uint32_t)short_values[found - short_names]);
    if (byte == '"' || byte == '\\' || (byte == '/' && w[0] == LIFT_JSON))
        return read_cp(s, w, byte);
    return byte == 'u' ? begin(s, w, M_HEX, 0) : LEADS_NOWHERE;
}

/* ---- all together ---- */

static uint32_t read_border(struct store *s, const uint32_t *w, unsigned byte)
{
    bool json = w[0] == LIFT_JSON || w[0] == LIFT_PLAIN;
    if (w[0] != LIFT_RAW && byte == lift_closer((enum lift)w[0]))
        return node_kind(s, w[1]) == RE_TUPLE || re_nullable(s, w[1]) ? LEADS_OUT : LEADS_NOWHERE;
    if (json && byte == '\\') return begin(s, w, M_ESCAPE, 0);
    if (json && byte < 0x20) return LEADS_NOWHERE;
    return byte < 0x80 ? read_cp(s, w, byte) : read_lead(s, w, byte);
}

static uint32_t find(struct store *s, const uint32_t *w, unsigned byte)
{
    uint32_t mode = w[2];
    switch ((enum mode)(mode >> MODE_SHIFT)) {
    case M_BORDER: return read_border(s, w, byte);
    case M_PART: return read_part(s, w, mode & 0xfffffff, byte);
    case M_TAIL: return read_tail(s, w, mode & 3, byte);
    case M_ESCAPE: return read_escape(s, w, byte);
    case M_HEX: return read_hex(s, w, mode & 0xfffffff, byte);
    case M_HIGH: return byte == '\\' ? state(s, w, w[1], M_HIGH_U, mode & 0x3ff) : LEADS_NOWHERE;
    case M_HIGH_U:
        return byte == 'u' ? state(s, w, w[1], M_LOW, (mode & 0x3ff) << 14) : LEADS_NOWHERE;
    case M_LOW: return read_low(s, w, mode & 0xffffff, byte);
    }
    return LEADS_NOWHERE;
}

void lift_forget(struct store *s)
{
    for (uint32_t x = 0; x < s->n_nodes && s->n_rows; x++) {
        if (s->nodes[x].kind != LIFTED || !s->nodes[x].data) continue;
        mem_free(s->nodes[x].data);
        s->nodes[x].data = NULL;
        s->n_rows--;
    }
}

uint32_t lift_find(struct store *s, node x, unsigned byte)
{
    uint32_t to = find(s, node_words(s, x), byte);
    if (s->status || x == 0) return LEADS_NOWHERE;
    if (!s->nodes[x].data) {
        if (s->n_rows >= MAX_ROWS) lift_forget(s);
        s->nodes[x].data = mem_alloc(256, sizeof to);
        if (!s->nodes[x].data) return to;
        s->n_rows++;
    }
    ((uint32_t *)s->nodes[x].data)[byte] = to;
    return to;
}
