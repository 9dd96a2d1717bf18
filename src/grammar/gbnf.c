/* gbnf.c - rules to trees, and trees to expressions that refer to each other.
 *
 *   rule     = name "::=" choice
 *   choice   = sequence { "|" sequence }
 *   sequence = { item [ "*" | "+" | "?" | "{m}" | "{m,}" | "{m,n}" ] }
 *   item     = "text" | [class] | [^class] | . | name | ( choice )
 *
 * A newline ends a rule, but not around "|", behind "::=" and in brackets.
 */
#include "grammar/gbnf.h"

#include "base/utf8.h"
#include "grammar/tree.h"

enum { MAX_RULES = 2000, MAX_TEXT = 1 << 18, MAX_NESTING = 60, MAX_COUNT = 100000 };

struct rule_tree {
    node name;         /* STRING */
    struct tree *tree; /* NULL: used, and not defined */
    bool nullable, productive, busy, seen;
};

struct parser {
    struct store *s;
    struct str text;
    size_t pos;
    struct rule_tree *rules;
    uint32_t n_rules, cap;
    unsigned depth;
};

/* ---- characters ---- */

static void *bad(struct parser *p, const char *what)
{
    uint32_t line = 1;
    for (size_t i = 0; i < p->pos && i < p->text.n; i++) line += p->text.p[i] == '\n';
    store_fail(p->s, BZ_ERR_FORMAT, "%s in line %u of the grammar", what, line);
    return NULL;
}

static int peek(const struct parser *p)
{
    return p->pos < p->text.n ? (unsigned char)p->text.p[p->pos] : -1;
}

static void skip_space(struct parser *p, bool newlines)
{
    for (;; p->pos++) {
        if (peek(p) == '#')
            while (peek(p) >= 0 && peek(p) != '\n') p->pos++;
        int c = peek(p);
        if (c != ' ' && c != '\t' && !(newlines && (c == '\n' || c == '\r'))) return;
    }
}

static bool is_name(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static struct str read_name(struct parser *p)
{
    size_t from = p->pos;
    while (is_name(peek(p))) p->pos++;
    return (struct str) { p->text.p + from, p->pos - from };
}

static int hex(int c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static uint32_t read_hex(struct parser *p, unsigned n)
{
    uint32_t v = 0;
    for (; n > 0 && hex(peek(p)) >= 0; n--) v = v << 4 | (uint32_t)hex(p->text.p[p->pos++]);
    if (n || v > LAST_CP) bad(p, "an escape that is no code point");
    return v;
}

static uint32_t read_char(struct parser *p)
{
    static const char from[] = "nrt\\\"[]", into[] = "\n\r\t\\\"[]";
    size_t used = 1;
    if (peek(p) == '\\' && p->pos + 1 < p->text.n) {
        int c = p->text.p[p->pos + 1];
        const char *found = c > 0 ? strchr(from, c) : NULL;
        p->pos += 2;
        if (found) return (uint32_t)into[found - from];
        if (c == 'x') return read_hex(p, 2);
        if (c == 'u') return read_hex(p, 4);
        if (c == 'U') return read_hex(p, 8);
        bad(p, "an unknown escape");
        return 0;
    }
    uint32_t cp = utf8_decode(p->text.p + p->pos, p->text.n - p->pos, &used);
    p->pos += used;
    return cp;
}

/* ---- rules to trees ---- */

static struct tree *read_choice(struct parser *p, bool in_brackets);

static struct tree *add_set(struct parser *p, const struct vec *v)
{
    struct tree *t = tree_new(p->s, T_SET);
    if (t) t->set = re_set(p->s, v->w, v->n / 2);
    return t;
}

static struct tree *read_text(struct parser *p) /* after the quote */
{
    struct tree *t = tree_new(p->s, T_CAT), **tail = t ? &t->child : NULL;
    while (!p->s->status && peek(p) != '"') {
        if (peek(p) < 0 || peek(p) == '\n') return bad(p, "a text without an end");
        struct vec v = { 0 };
        uint32_t cp = read_char(p);
        set_add(p->s, &v, cp, cp);
        struct tree *c = add_set(p, &v);
        vec_free(&v);
        if (!c) return NULL;
        *tail = c;
        tail = &c->next;
    }
    p->pos++;
    return t;
}

static struct tree *read_class(struct parser *p) /* after the bracket */
{
    struct vec v = { 0 };
    bool negated = peek(p) == '^';
    p->pos += negated;
    while (!p->s->status && peek(p) != ']') {
        if (peek(p) < 0) {
            bad(p, "a class without an end");
            break;
        }
        uint32_t first = read_char(p), last = first;
        if (peek(p) == '-' && p->pos + 1 < p->text.n && p->text.p[p->pos + 1] != ']') {
            p->pos++;
            last = read_char(p);
            if (last < first) bad(p, "a range that ends before it begins");
        }
        set_add(p->s, &v, first, last);
    }
    p->pos++;
    set_tidy(p->s, &v);
    if (negated) set_negate(p->s, &v);
    struct tree *t = add_set(p, &v);
    vec_free(&v);
    return t;
}

/* The number of a rule, which may be defined later. */
static uint32_t rule_number(struct parser *p, struct str name)
{
    node n = store_string(p->s, name);
    if (p->s->status) return 0;
    if (p->s->nodes[n].aux) return p->s->nodes[n].aux - 1;
    if (p->n_rules == MAX_RULES) {
        store_fail(p->s, BZ_ERR_LIMIT, "a grammar of more than %d rules", MAX_RULES);
        return 0;
    }
    if (p->n_rules == p->cap) {
        uint32_t cap = p->cap ? 2 * p->cap : 32;
        struct rule_tree *r = mem_grow(p->rules, cap, sizeof *r);
        if (!r) {
            store_fail(p->s, BZ_ERR_MEMORY, "out of memory for a grammar");
            return 0;
        }
        p->rules = r;
        p->cap = cap;
    }
    p->rules[p->n_rules++] = (struct rule_tree) { .name = n };
    p->s->nodes[n].aux = p->n_rules;
    return p->n_rules - 1;
}

static struct tree *read_item(struct parser *p)
{
    int c = peek(p);
    struct tree *t;
    if (c == '"' || c == '[' || c == '.' || c == '(') p->pos++;
    if (c == '"') return read_text(p);
    if (c == '[') return read_class(p);
    if (c == '.' || is_name(c)) {
        t = tree_new(p->s, c == '.' ? T_SET : T_RULE);
        if (t) t->set = c == '.' ? re_any(p->s) : rule_number(p, read_name(p));
        return t;
    }
    if (c != '(') return bad(p, "something unexpected");
    if (p->depth++ == MAX_NESTING) return bad(p, "too many brackets inside one another");
    t = read_choice(p, true);
    p->depth--;
    if (!p->s->status && peek(p) != ')') return bad(p, "a bracket that is not closed");
    p->pos++;
    return t;
}

static uint32_t read_count(struct parser *p)
{
    uint32_t n = 0;
    if (peek(p) < '0' || peek(p) > '9') bad(p, "a repetition without a number");
    for (; peek(p) >= '0' && peek(p) <= '9'; p->pos++)
        if (n <= MAX_COUNT) n = 10 * n + (uint32_t)(peek(p) - '0');
    if (n > MAX_COUNT) bad(p, "a repetition of more than 100000");
    skip_space(p, false);
    return n;
}

static bool read_repetition(struct parser *p, uint32_t *least, uint32_t *most)
{
    int c = peek(p);
    *least = c == '+';
    *most = c == '?' ? 1 : RE_INF;
    if (c != '*' && c != '+' && c != '?' && c != '{') return false;
    p->pos++;
    if (c != '{') return true;
    skip_space(p, false);
    *least = *most = read_count(p);
    if (peek(p) == ',') {
        p->pos++;
        skip_space(p, false);
        *most = peek(p) == '}' ? RE_INF : read_count(p);
    }
    if (!p->s->status && (peek(p) != '}' || *most < *least))
        bad(p, "a repetition of unexpected form");
    p->pos++;
    return true;
}

static struct tree *read_sequence(struct parser *p, bool in_brackets)
{
    struct tree *t = tree_new(p->s, T_CAT), **tail = t ? &t->child : NULL;
    for (skip_space(p, in_brackets); !p->s->status; skip_space(p, in_brackets)) {
        int c = peek(p);
        uint32_t least, most;
        if (c < 0 || c == '|' || c == ')' || c == '\n' || c == '\r') break;
        struct tree *item = read_item(p);
        skip_space(p, false);
        while (item && !p->s->status && read_repetition(p, &least, &most)) {
            struct tree *r = tree_new(p->s, T_REP);
            if (!r) return NULL;
            *r = (struct tree) { T_REP, true, 0, least, most, item, NULL };
            item = r;
            skip_space(p, false);
        }
        if (!item) return NULL;
        *tail = item;
        tail = &item->next;
    }
    return t;
}

static struct tree *read_choice(struct parser *p, bool in_brackets)
{
    struct tree *t = tree_new(p->s, T_ALT), **tail = t ? &t->child : NULL;
    while (!p->s->status) {
        struct tree *c = read_sequence(p, in_brackets);
        if (!c) return NULL;
        *tail = c;
        tail = &c->next;
        size_t before = p->pos;
        skip_space(p, true); /* a choice may go on in the next line */
        if (peek(p) != '|') {
            p->pos = in_brackets ? p->pos : before;
            return t;
        }
        p->pos++;
        skip_space(p, true);
    }
    return NULL;
}

static void read_rules(struct parser *p)
{
    for (skip_space(p, true); peek(p) >= 0 && !p->s->status; skip_space(p, true)) {
        struct str name = read_name(p);
        skip_space(p, false);
        struct str rest = { p->text.p + p->pos, p->text.n - p->pos };
        if (!name.n || !str_starts(rest, "::=")) {
            bad(p, "no rule");
            return;
        }
        p->pos += 3;
        skip_space(p, true);
        uint32_t i = rule_number(p, name);
        struct tree *t = read_choice(p, false);
        if (p->s->status) return;
        if (p->rules[i].tree) bad(p, "a rule that was defined before");
        else p->rules[i].tree = t;
        int c = peek(p);
        if (c >= 0 && c != '\n' && c != '\r') bad(p, "something unexpected");
    }
}

/* ---- what rules can be ---- */

/* Can the tree be the empty text (nullable), or any text at all (productive)? By what is known of
 * rules so far. */
static bool judge(const struct parser *p, const struct tree *t, bool nullable)
{
    switch (t->shape) {
    case T_RULE: return nullable ? p->rules[t->set].nullable : p->rules[t->set].productive;
    case T_REP: return t->least == 0 || t->most == 0 || judge(p, t->child, nullable);
    case T_CAT:
        for (const struct tree *c = t->child; c; c = c->next)
            if (!judge(p, c, nullable)) return false;
        return true;
    case T_ALT:
        for (const struct tree *c = t->child; c; c = c->next)
            if (judge(p, c, nullable)) return true;
        return false;
    default: return !nullable && t->set != 0;
    }
}

static void judge_rules(struct parser *p)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < p->n_rules; i++) {
            struct rule_tree *r = &p->rules[i];
            bool nullable = judge(p, r->tree, true), productive = judge(p, r->tree, false);
            changed |= nullable != r->nullable || productive != r->productive;
            r->nullable = nullable;
            r->productive = productive;
        }
    }
}

static void refuse_left(struct parser *p, uint32_t rule);

/* Look at every rule that the tree can begin with; true: it can be empty. */
static bool walk_left(struct parser *p, const struct tree *t)
{
    bool any = false;
    switch (t->shape) {
    case T_RULE: refuse_left(p, t->set); return p->rules[t->set].nullable;
    case T_REP: return walk_left(p, t->child) || t->least == 0;
    case T_CAT:
        for (const struct tree *c = t->child; c; c = c->next)
            if (!walk_left(p, c)) return false;
        return true;
    case T_ALT:
        for (const struct tree *c = t->child; c; c = c->next) any |= walk_left(p, c);
        return any;
    default: return false;
    }
}

/* A rule that can begin with itself never gets to a character. */
static void refuse_left(struct parser *p, uint32_t rule)
{
    struct rule_tree *r = &p->rules[rule];
    if (r->busy) {
        struct str name = store_text(p->s, r->name);
        store_fail(p->s, BZ_ERR_UNSUPPORTED, "the rule \"%.*s\" can begin with itself",
                   (int)(name.n > 100 ? 100 : name.n), name.p);
    }
    if (r->seen || p->s->status) return;
    if (p->depth++ > 400) store_fail(p->s, BZ_ERR_LIMIT, "the grammar's rules nest too deeply");
    r->busy = true;
    walk_left(p, r->tree);
    r->busy = false;
    r->seen = true;
    p->depth--;
}

/* ---- rules to expressions ---- */

/* A rule's number becomes its node. */
static void name_rules(const struct parser *p, struct tree *t, const node *nodes)
{
    if (t->shape == T_RULE) t->set = p->rules[t->set].productive ? nodes[t->set] : 0;
    for (struct tree *c = t->child; c; c = c->next) name_rules(p, c, nodes);
}

static node build(struct parser *p, uint32_t root)
{
    node *nodes = mem_alloc(p->n_rules, sizeof *nodes), x = 0;
    if (!nodes) store_fail(p->s, BZ_ERR_MEMORY, "out of memory for a grammar");
    for (uint32_t i = 0; nodes && i < p->n_rules; i++)
        nodes[i] = re_rule(p->s, p->rules[i].nullable, false);
    for (uint32_t i = 0; nodes && i < p->n_rules && !p->s->status; i++) {
        name_rules(p, p->rules[i].tree, nodes);
        re_rule_is(p->s, nodes[i], tree_simple(p->s, p->rules[i].tree));
    }
    if (nodes && !p->s->status) x = p->rules[root].productive ? nodes[root] : 0;
    mem_free(nodes);
    return x;
}

node gbnf_read(struct store *s, struct str text)
{
    struct parser p = { .s = s, .text = text };
    node x = 0;
    if (text.n > MAX_TEXT)
        store_fail(s, BZ_ERR_LIMIT, "a grammar of %zu bytes; %d are read", text.n, MAX_TEXT);
    if (!s->status) read_rules(&p);
    uint32_t root = s->status ? 0 : rule_number(&p, str_of("root"));
    for (uint32_t i = 0; i < p.n_rules && !s->status; i++) {
        struct str name = store_text(s, p.rules[i].name);
        if (!p.rules[i].tree)
            store_fail(s, BZ_ERR_FORMAT, "the grammar has no rule \"%.*s\"",
                       (int)(name.n > 100 ? 100 : name.n), name.p);
    }
    if (!s->status) {
        judge_rules(&p);
        for (uint32_t i = 0; i < p.n_rules; i++) refuse_left(&p, i);
    }
    if (!s->status) x = build(&p, root);
    mem_free(p.rules);
    arena_reset(&s->trees);
    return x;
}
