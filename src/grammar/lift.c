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
enum { MODE_SHIFT = 28, MAX_ROWS = 6000 };

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

/* ---- UTF-8 ---- */

/* `value` has the bits of some bytes, `rest` are to come: which code points? Of three bytes there
 * are none below 0x800 and none of pairs, of four only those of 0x10000..LAST_CP. */
static void utf8_range(uint32_t value, uint32_t rest, uint32_t *first, uint32_t *last)
{
    *first = value << 6 * rest;
    *last = *first | ((1u << 6 * rest) - 1);
    if (rest == 2 && value == 0) *first = 0x800;
    if (rest == 2 && value == 13) *last = 0xd7ff;
    if (rest == 3 && value == 0) *first = 0x10000;
    if (rest == 3 && value == 4) *last = LAST_CP;
}

static uint32_t part(struct store *s, const uint32_t *w, uint32_t value, uint32_t rest)
{
    uint32_t first, last;
    node only;
    utf8_range(value, rest, &first, &last);
    if (!can_read(s, w[1], first, last, &only)) return LEADS_NOWHERE;
    /* Leads whose second byte has its own limits are followed to the end. */
    bool limited =
        (rest == 2 && (value == 0 || value == 13)) || (rest == 3 && (value == 0 || value == 4));
    if (only && !limited) return state(s, w, only, M_TAIL, rest);
    return state(s, w, w[1], M_PART, rest << 24 | value);
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

static const char short_names[] = "bfnrt", short_values[] = "\b\f\n\r\t";

/* May this code point be written as \uXXXX? */
static bool may_be_hex(const uint32_t *w, uint32_t cp)
{
    return w[0] == LIFT_JSON || (cp < 0x20 && (cp == 0 || !strchr(short_values, (int)cp)));
}

static uint32_t hex_digits(struct store *s, const uint32_t *w, uint32_t n, uint32_t value)
{
    uint32_t first = value << 4 * (4 - n), last = first | ((1u << 4 * (4 - n)) - 1);
    node only;
    if (n == 4 && value >= 0xd800 && value < 0xdc00) {
        first = 0x10000 + ((value & 0x3ff) << 10);
        if (!can_read(s, w[1], first, first + 0x3ff, &only)) return LEADS_NOWHERE;
        return state(s, w, w[1], M_HIGH, value & 0x3ff);
    }
    if (n == 4) return value >= 0xdc00 && value < 0xe000 ? LEADS_NOWHERE : read_cp(s, w, value);
    if (first >= 0xdc00 && last < 0xe000) return LEADS_NOWHERE;
    bool pair = first <= 0xdbff && last >= 0xd800 && can_read(s, w[1], 0x10000, LAST_CP, &only);
    if (!pair && !can_read(s, w[1], first, last, &only)) return LEADS_NOWHERE;
    return state(s, w, w[1], M_HEX, n << 16 | value);
}

static int hex(unsigned c, bool lower_only)
{
    if (c >= '0' && c <= '9') return (int)c - '0';
    if (c >= 'A' && c <= 'F' && !lower_only) return (int)c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? (int)c - 'a' + 10 : -1;
}

static uint32_t read_hex(struct store *s, const uint32_t *w, uint32_t mode, unsigned byte)
{
    int d = hex(byte, w[0] == LIFT_PLAIN);
    uint32_t n = (mode >> 16 & 7) + 1, value = (mode & 0xffff) << 4 | (uint32_t)d;
    if (d < 0) return LEADS_NOWHERE;
    if (w[0] == LIFT_PLAIN) {
        /* only control characters without a short name: \u00 and two digits of 00..1f */
        if ((n <= 2 && value) || (n == 3 && value > 1)) return LEADS_NOWHERE;
        if (n == 4 && !may_be_hex(w, value)) return LEADS_NOWHERE;
    }
    return hex_digits(s, w, n, value);
}

static uint32_t read_low(struct store *s, const uint32_t *w, uint32_t mode, unsigned byte)
{
    int d = hex(byte, false);
    uint32_t high = mode >> 14 & 0x3ff, n = (mode >> 12 & 3) + 1;
    uint32_t value = (mode & 0xfff) << 4 | (uint32_t)d;
    if (d < 0 || (n == 1 && d != 13) || (n == 2 && d < 12)) return LEADS_NOWHERE;
    if (n == 4) return read_cp(s, w, 0x10000 + (high << 10) + (value & 0x3ff));
    uint32_t low = value << 4 * (4 - n) & 0x3ff, first = 0x10000 + (high << 10) + low;
    uint32_t span = n == 1 ? 0x3ff : (1u << 4 * (4 - n)) - 1;
    node only;
    if (!can_read(s, w[1], first, first + span, &only)) return LEADS_NOWHERE;
    return state(s, w, w[1], M_LOW, high << 14 | n << 12 | value);
}

static uint32_t read_escape(struct store *s, const uint32_t *w, unsigned byte)
{
    const char *found = byte ? strchr(short_names, (int)byte) : NULL;
    if (found) return read_cp(s, w, (uint32_t)short_values[found - short_names]);
    if (byte == '"' || byte == '\\' || (byte == '/' && w[0] == LIFT_JSON))
        return read_cp(s, w, byte);
    if (byte != 'u') return LEADS_NOWHERE;
    node only;
    if (!can_read(s, w[1], 0, w[0] == LIFT_JSON ? LAST_CP : 0x1f, &only)) return LEADS_NOWHERE;
    return state(s, w, w[1], M_HEX, 0);
}

/* After a backslash something must be able to follow. */
static uint32_t begin_escape(struct store *s, const uint32_t *w)
{
    node only;
    bool any = w[0] == LIFT_JSON
                   ? can_read(s, w[1], 0, LAST_CP, &only)
                   : can_read(s, w[1], 0, 0x1f, &only) || can_read(s, w[1], '"', '"', &only) ||
                         can_read(s, w[1], '\\', '\\', &only);
    return any ? state(s, w, w[1], M_ESCAPE, 0) : LEADS_NOWHERE;
}

/* ---- all together ---- */

static uint32_t read_border(struct store *s, const uint32_t *w, unsigned byte)
{
    bool json = w[0] == LIFT_JSON || w[0] == LIFT_PLAIN;
    if (json && byte == '"')
        return node_kind(s, w[1]) == RE_TUPLE || re_nullable(s, w[1]) ? LEADS_OUT : LEADS_NOWHERE;
    if (json && byte == '\\') return begin_escape(s, w);
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

bool lift_pending(const struct store *s, node x, uint32_t *first, uint32_t *last)
{
    uint32_t mode = node_words(s, x)[2], value = mode & 0xffffff;
    *first = 0;
    *last = LAST_CP;
    switch ((enum mode)(mode >> MODE_SHIFT)) {
    case M_BORDER: return false;
    case M_PART: utf8_range(value, mode >> 24 & 3, first, last); return true;
    case M_HEX: {
        uint32_t n = value >> 16, v = value & 0xffff;
        if (n == 0 || v >> 4 * (n - 1) == 13) return true; /* perhaps a pair */
        *first = v << 4 * (4 - n);
        *last = *first | ((1u << 4 * (4 - n)) - 1);
        return true;
    }
    case M_HIGH:
    case M_HIGH_U:
        *first = 0x10000 + ((mode & 0x3ff) << 10);
        *last = *first + 0x3ff;
        return true;
    default: return true;
    }
}
