/* re_words.c - sets of words as trees: enums, and the names of an object's members.
 *
 * words of a RE_MAP: value + 1 where a word ends here, first and last + 1 of the values below, then
 * code points and subtrees. Equal subtrees are one node.
 */
#include "base/utf8.h"
#include "grammar/re.h"

enum { HEAD = 3 };

static node put_map(struct store *s, const uint32_t *w, uint32_t n)
{
    node x = store_put(s, RE_MAP, w, n);
    if (s->status) return 0;
    s->nodes[x].flags |= RE_READY | RE_LIVE | (w[0] ? RE_NULLABLE : 0);
    return x;
}

/* The tree of one level is finished when a word leaves it. The levels above are open: what is known
 * of them lies on a stack, the deepest on top. */
struct level {
    uint32_t value, first, from; /* from: where its children begin on the stack */
    uint32_t cp;                 /* that leads to it */
};

struct builder {
    struct store *s;
    struct vec levels; /* struct level */
    struct vec stack;  /* code point, subtree */
    uint32_t last;     /* value + 1 of the last word */
};

enum { LEVEL = sizeof(struct level) / sizeof(uint32_t) };

static struct level *top(struct builder *b)
{
    return (struct level *)(void *)(b->levels.w + b->levels.n - LEVEL);
}

static void push_level(struct builder *b, uint32_t cp, uint32_t first)
{
    const struct level l = { 0, first, b->stack.n, cp };
    vec_put(b->s, &b->levels, (const uint32_t *)&l, LEVEL);
}

static node close_level(struct builder *b)
{
    struct level l = *top(b);
    struct vec w = { 0 };
    vec_put(b->s, &w, (const uint32_t[]) { l.value, l.first, b->last }, HEAD);
    if (b->stack.n > l.from) vec_put(b->s, &w, b->stack.w + l.from, b->stack.n - l.from);
    node x = put_map(b->s, w.w, w.n);
    vec_free(&w);
    b->stack.n = l.from;
    b->levels.n -= LEVEL;
    if (b->levels.n) vec_put(b->s, &b->stack, (const uint32_t[]) { l.cp, x }, 2);
    return x;
}

/* How many code points two words have in common at their beginning; *at: bytes of those. */
static uint32_t common(struct str a, struct str b, size_t *at)
{
    uint32_t n = 0;
    size_t i = 0, ua, ub;
    while (i < a.n && i < b.n) {
        if (utf8_decode(a.p + i, a.n - i, &ua) != utf8_decode(b.p + i, b.n - i, &ub)) break;
        i += ua;
        n++;
    }
    *at = i;
    return n;
}

node re_words(struct store *s, const struct str *words, uint32_t n, bool numbered)
{
    struct builder b = { .s = s };
    node x = 0;
    push_level(&b, 0, numbered ? 1 : 0);
    for (uint32_t i = 0; i < n && !s->status; i++) {
        size_t at = 0, used;
        uint32_t same = i ? common(words[i - 1], words[i], &at) : 0;
        while (b.levels.n / LEVEL > same + 1) close_level(&b);
        uint32_t value = numbered ? i + 1 : 1;
        for (; at < words[i].n; at += used)
            push_level(&b, utf8_decode(words[i].p + at, words[i].n - at, &used),
                       numbered ? value : 0);
        if (s->status) break;
        top(&b)->value = value;
        b.last = numbered ? value : 0;
    }
    while (b.levels.n && !s->status) x = close_level(&b);
    vec_free(&b.levels);
    vec_free(&b.stack);
    return n ? x : 0;
}

/* A copy of a tree's root, or of no tree, with another subtree for cp. */
static node with_child(struct store *s, node words, uint32_t cp, node below)
{
    struct vec w = { 0 };
    uint32_t at = HEAD;
    if (words) vec_put(s, &w, node_words(s, words), node_n(s, words));
    else vec_put(s, &w, (const uint32_t[HEAD]) { 0 }, HEAD);
    if (s->status) {
        vec_free(&w);
        return 0;
    }
    while (at < w.n && w.w[at] < cp) at += 2;
    if (at == w.n || w.w[at] != cp) {
        vec_put(s, &w, (const uint32_t[]) { 0, 0 }, 2);
        if (!s->status) memmove(w.w + at + 2, w.w + at, (w.n - at - 2) * sizeof *w.w);
    }
    if (!s->status) {
        w.w[at] = cp;
        w.w[at + 1] = below;
    }
    node x = s->status ? 0 : put_map(s, w.w, w.n);
    vec_free(&w);
    return x;
}

node re_words_add(struct store *s, node words, struct str word)
{
    struct vec path = { 0 }; /* subtree, code point that is read there */
    size_t at = 0, used;
    for (; at < word.n; at += used) {
        uint32_t cp = utf8_decode(word.p + at, word.n - at, &used);
        vec_put(s, &path, (const uint32_t[]) { words, cp }, 2);
        words = words ? re_step(s, words, cp) : 0;
    }
    struct vec end = { 0 };
    if (words) vec_put(s, &end, node_words(s, words), node_n(s, words));
    else vec_put(s, &end, (const uint32_t[HEAD]) { 0 }, HEAD);
    if (!s->status) end.w[0] = 1;
    node x = s->status ? 0 : put_map(s, end.w, end.n);
    for (uint32_t i = path.n; i > 0 && !s->status; i -= 2)
        x = with_child(s, path.w[i - 2], path.w[i - 1], x);
    vec_free(&end);
    vec_free(&path);
    return x;
}
