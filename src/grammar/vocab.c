/* vocab.c - builds the tree of a vocabulary, and sorts its tokens by what they do to a string. */
#include "grammar/vocab.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"

/* ---- the bytes of tokens ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c - 'A' + 10;
}

bool vocab_is_text(const struct tokenizer *t, uint32_t token)
{
    enum token_type type = tokenizer_type(t, (int32_t)token);
    if (type == TOKEN_BYTE) return true;
    if (tokenizer_text(t, (int32_t)token).n == 0) return false;
    return type == TOKEN_NORMAL ||
           (type == TOKEN_USER_DEFINED && !tokenizer_is_special(t, (int32_t)token));
}

/* As detok.c shows them; bytes that stand for tags are no text. */
bool vocab_bytes(const struct tokenizer *t, uint32_t token, char *to, size_t *n)
{
    struct str s = tokenizer_text(t, (int32_t)token);
    enum token_type type = tokenizer_type(t, (int32_t)token);
    unsigned byte = tag_byte(t, (int32_t)token);
    *n = 0;
    if (!byte && !vocab_is_text(t, token)) return false;
    if (type == TOKEN_BYTE) byte = (unsigned)(hex(s.p[3]) << 4 | hex(s.p[4]));
    if (type == TOKEN_BYTE && byte >= BYTE_FIRST) return false;
    if (byte || type == TOKEN_BYTE) {
        to[(*n)++] = (char)byte;
        return true;
    }
    for (size_t i = 0; i < s.n;) {
        struct str rest = { s.p + i, s.n - i };
        bool space = type == TOKEN_NORMAL && str_starts(rest, "\xe2\x96\x81");
        to[(*n)++] = space ? ' ' : s.p[i];
        i += space ? 3 : 1;
    }
    return true;
}

/* ---- trees ---- */

struct item {
    const unsigned char *p;
    uint32_t n, token, chars;
};

static int byte_at(const struct item *i, uint32_t at)
{
    return at < i->n ? i->p[at] : -1;
}

/* Quicksort by one byte at a time: what is equal in it goes on with the next. */
static void sort_items(struct item *v, uint32_t n, uint32_t at)
{
    while (n > 1) {
        int pivot = byte_at(&v[n / 2], at);
        uint32_t lo = 0, i = 0, hi = n;
        while (i < hi) {
            int c = byte_at(&v[i], at);
            struct item x = v[i];
            if (c < pivot) {
                v[i++] = v[lo];
                v[lo++] = x;
            } else if (c > pivot) {
                v[i] = v[--hi];
                v[hi] = x;
            } else {
                i++;
            }
        }
        sort_items(v, lo, at);
        sort_items(v + hi, n - hi, at);
        if (pivot < 0) return;
        v += lo;
        n = hi - lo;
        at++;
    }
}

static void trie_free(struct trie *t)
{
    mem_free(t->nodes);
    mem_free(t->tokens);
    mem_free(t->chars);
    *t = (struct trie) { 0 };
}

static uint32_t count_nodes(const struct item *v, uint32_t n)
{
    uint32_t nodes = 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t same = 0;
        while (i && same < v[i].n && same < v[i - 1].n && v[i].p[same] == v[i - 1].p[same]) same++;
        nodes += v[i].n - same;
    }
    return nodes;
}

/* 0: what a JSON string escapes. Then digits, capitals, small letters, space, and signs. */
const unsigned char byte_class[128] = {
    0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0, 0, 0,
    0, 0, 0, 0, 0, 0, 4,  5,  0,  6,  7,  8,  9,  10, 11, 11, 12, 13, 14, 15, 16, 17, 1,  1, 1, 1,
    1, 1, 1, 1, 1, 1, 18, 19, 20, 21, 20, 22, 23, 2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2, 2, 2,
    2, 2, 2, 2, 2, 2, 2,  2,  2,  2,  2,  2,  2,  24, 0,  24, 25, 26, 27, 3,  3,  3,  3,  3, 3, 3,
    3, 3, 3, 3, 3, 3, 3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  28, 29, 28, 27, 0,
};

static uint32_t class_bit(unsigned byte)
{
    return 1u << (byte < 0x80 ? byte_class[byte] : CLASS_UTF8);
}

static bool is_utf8(const struct item *i)
{
    size_t used = 0;
    for (size_t k = 0; k < i->n; k += used) {
        utf8_decode((const char *)i->p + k, i->n - k, &used);
        if (used == 1 && i->p[k] >= 0x80) return false;
    }
    return true;
}

/* The children of node i, whose items [from, to) agree in `depth` bytes, and all below them. */
static void fill_children(struct trie *t, const struct item *v, uint32_t i, uint32_t from,
                          uint32_t to, uint32_t depth, uint32_t *made)
{
    uint32_t first = *made, start = from;
    for (; from < to && v[from].n == depth; start = ++from) /* these end at node i */
        if (!is_utf8(&v[from])) t->nodes[i].classes |= 1u << CLASS_BROKEN;
    t->nodes[i].child = first;
    for (; from < to; ++*made) {
        unsigned char byte = v[from].p[depth];
        t->nodes[*made].byte = byte;
        while (from < to && v[from].p[depth] == byte) from++;
    }
    t->nodes[i].n_children = (uint16_t)(*made - first);
    for (uint32_t c = first, end = *made; c < end; c++) {
        from = start;
        while (start < to && v[start].p[depth] == t->nodes[c].byte) start++;
        fill_children(t, v, c, from, start, depth + 1, made);
        t->nodes[i].classes |= t->nodes[c].classes | class_bit(t->nodes[c].byte);
    }
}

/* Tokens in the order of the nodes where they end. */
static void fill_entries(struct trie *t, const struct item *v, uint32_t n, uint32_t *ends)
{
    for (uint32_t i = 0; i < n; i++) { /* counts, one place further on */
        uint32_t at = 0;
        for (uint32_t k = 0; k < v[i].n; k++) {
            uint32_t c = t->nodes[at].child;
            while (t->nodes[c].byte != v[i].p[k]) c++;
            at = c;
        }
        ends[i] = at;
        t->nodes[at + 1].entry++;
    }
    for (uint32_t i = 0; i < t->n_nodes; i++) t->nodes[i + 1].entry += t->nodes[i].entry;
    for (uint32_t i = n; i-- > 0;) { /* items that end at one node are neighbours */
        uint32_t same = 0;
        while (same < i && ends[i - 1 - same] == ends[i]) same++;
        uint32_t e = t->nodes[ends[i]].entry + same;
        t->tokens[e] = v[i].token;
        t->chars[e] = (uint16_t)(v[i].chars < UINT16_MAX ? v[i].chars : UINT16_MAX);
    }
}

static bool trie_build(struct trie *t, struct item *v, uint32_t n)
{
    uint32_t made = 1;
    sort_items(v, n, 0);
    t->n_nodes = count_nodes(v, n);
    t->nodes = mem_alloc((size_t)t->n_nodes + 1, sizeof *t->nodes);
    t->tokens = mem_alloc(n, sizeof *t->tokens);
    t->chars = mem_alloc(n, sizeof *t->chars);
    uint32_t *ends = mem_alloc(n, sizeof *ends);
    bool ok = t->nodes && t->tokens && t->chars && ends;
    if (ok) {
        fill_children(t, v, 0, 0, n, 0, &made);
        fill_entries(t, v, n, ends);
    }
    mem_free(ends);
    return ok;
}

/* ---- strings without limits ---- */

/* A walk of the whole tree through a string's automaton. */
struct sorter {
    struct store s;
    const struct trie *all;
    unsigned char path[MAX_TOKEN_BYTES];
    struct item *items; /* those that leave, their bytes in `bytes` */
    uint32_t n_items;
    struct buf bytes;
    uint32_t *inside;
    uint32_t *lengths; /* of each token inside: code points + 1 */
};

static void sort_token(struct sorter *k, uint32_t token, uint32_t depth, uint32_t quote,
                       uint32_t chars)
{
    if (!quote) {
        k->inside[token / 32] |= 1u << token % 32;
        k->lengths[token] = chars + 1;
        return;
    }
    k->items[k->n_items++] = (struct item) { NULL, depth - quote, token, chars };
    buf_put(&k->bytes, k->path + quote, depth - quote);
}

/* `quote`: depth behind the closing quote, 0 while inside. */
static void sort_tokens(struct sorter *k, uint32_t i, node state, uint32_t depth, uint32_t quote,
                        uint32_t chars)
{
    const struct trie_node *n = k->all->nodes;
    for (uint32_t c = n[i].child; c < n[i].child + n[i].n_children; c++) {
        uint32_t to = state, begun = chars, after = quote;
        if (!quote) {
            to = lift_step(&k->s, state, n[c].byte);
            if (to == LEADS_NOWHERE) continue;
            if (to == LEADS_OUT) after = depth + 1;
            else if (lift_at_border(&k->s, state)) begun++;
        }
        k->path[depth] = n[c].byte;
        for (uint32_t e = n[c].entry; e < n[c + 1].entry; e++)
            sort_token(k, k->all->tokens[e], depth + 1, after, begun);
        sort_tokens(k, c, to, depth + 1, after, begun);
    }
}

static bool sort_by_length(struct free_text *f, const struct vocab *v, const uint32_t *lengths)
{
    uint32_t n = 0;
    f->length_at = mem_alloc((size_t)v->max_chars + 2, sizeof *f->length_at);
    f->by_length = mem_alloc(v->n_tokens, sizeof *f->by_length);
    if (!f->length_at || !f->by_length) return false;
    for (uint32_t i = 0; i < v->n_tokens; i++)
        if (lengths[i]) f->length_at[lengths[i] - 1]++;
    for (uint32_t l = 0; l <= v->max_chars + 1; l++) { /* counts to where each length begins */
        uint32_t count = f->length_at[l];
        f->length_at[l] = n;
        n += count;
    }
    for (uint32_t i = 0; i < v->n_tokens; i++)
        if (lengths[i]) f->by_length[f->length_at[lengths[i] - 1]++] = i;
    for (uint32_t l = v->max_chars + 1; l > 0; l--) f->length_at[l] = f->length_at[l - 1];
    f->length_at[0] = 0;
    return true;
}

static bool make_free_text(struct vocab *v, enum lift kind)
{
    struct free_text *f = &v->text[kind];
    struct sorter *k = mem_alloc(1, sizeof *k);
    bool ok = k && store_open(&k->s);
    if (ok) {
        k->all = &v->all;
        k->items = mem_alloc(v->n_tokens, sizeof *k->items);
        k->lengths = mem_alloc(v->n_tokens, sizeof *k->lengths);
        f->inside = k->inside = mem_alloc(v->n_words, sizeof *k->inside);
        ok = k->items && k->lengths && f->inside;
    }
    if (ok) {
        sort_tokens(k, 0, lift_start(&k->s, kind, re_any_text(&k->s)), 0, 0, 0);
        buf_put(&k->bytes, "", 0); /* also where no token leaves a string */
        ok = !k->bytes.failed && !k->s.status;
        const unsigned char *p = (const unsigned char *)k->bytes.data;
        for (uint32_t i = 0; i < k->n_items && ok; p += k->items[i++].n) k->items[i].p = p;
        ok = ok && trie_build(&f->after, k->items, k->n_items) && sort_by_length(f, v, k->lengths);
        buf_free(&k->bytes);
    }
    if (k) {
        lift_forget(&k->s);
        store_close(&k->s);
        mem_free(k->items);
        mem_free(k->lengths);
        mem_free(k);
    }
    return ok;
}

/* ---- open and close ---- */

static bool make_tree(struct vocab *v)
{
    struct item *items = mem_alloc(v->n_tokens, sizeof *items);
    size_t total = 0, used = 0, n;
    uint32_t n_items = 0;
    for (uint32_t i = 0; i < v->n_tokens; i++) total += tokenizer_text(v->t, (int32_t)i).n;
    char *bytes = mem_alloc(total, 1);
    bool ok = items && bytes;
    for (uint32_t i = 0; i < v->n_tokens && ok; i++) {
        if (tokenizer_text(v->t, (int32_t)i).n > MAX_TOKEN_BYTES) continue;
        if (!vocab_bytes(v->t, i, bytes + used, &n) || n == 0) continue;
        items[n_items++] = (struct item) { (const unsigned char *)bytes + used, (uint32_t)n, i, 0 };
        if (n > v->max_bytes) v->max_bytes = (uint32_t)n;
        used += n;
    }
    v->max_chars = v->max_bytes; /* a bound */
    ok = ok && trie_build(&v->all, items, n_items);
    mem_free(items);
    mem_free(bytes);
    return ok;
}

enum bz_status vocab_open(struct vocab **out, const struct tokenizer *t, struct bz_err *err)
{
    struct vocab *v = mem_alloc(1, sizeof *v);
    if (!v) return fail_memory(err, sizeof *v);
    v->t = t;
    v->n_tokens = tokenizer_size(t);
    v->n_words = (v->n_tokens + 31) / 32;
    for (uint32_t i = 0; i < v->n_tokens && v->n_ends < 8; i++)
        if (tokenizer_is_end(t, (int32_t)i)) v->ends[v->n_ends++] = i;
    if (!make_tree(v) || !make_free_text(v, LIFT_JSON) || !make_free_text(v, LIFT_PLAIN) ||
        !make_free_text(v, LIFT_CALL)) {
        vocab_close(v);
        return fail_memory(err, (uint64_t)tokenizer_size(t) * 64);
    }
    *out = v;
    return BZ_OK;
}

void vocab_close(struct vocab *v)
{
    if (!v) return;
    trie_free(&v->all);
    for (int i = 0; i < N_LIFTS; i++) {
        mem_free(v->text[i].inside);
        mem_free(v->text[i].by_length);
        mem_free(v->text[i].length_at);
        trie_free(&v->text[i].after);
    }
    mem_free(v);
}

uint32_t vocab_mask_words(const struct vocab *v)
{
    return v->n_words;
}
