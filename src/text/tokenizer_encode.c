/* tokenizer_encode.c - text to token ids.
 *
 *   text -> special tokens and fragments between them        match_special
 *        -> runs of newlines and runs of anything else       encode_fragment
 *        -> units: cut where no merge can ever join          unit_end
 *        -> BPE in each unit: the pair of lowest rank merges first, leftmost on ties
 *
 * Only newlines split text by definition; a run is a whole line. But a merge joins two symbols at
 * the characters that touch. Between two characters whose classes no merge joins, nothing is ever
 * joined, so both sides are independent. In practice that cuts a line into its words, which are
 * short enough for a plain scan. Where it does not, a heap keeps long units at n log n.
 */
#include <assert.h>

#include "text/tokenizer_impl.h"

#define MAX_SHORT 48u /* symbols: up to here a scan beats a heap */

/* A symbol of a long unit, in a list. rank and result are those of the pair (this, next). */
struct symbol {
    uint32_t id, prev, next, rank, result;
};

#define END 0xffffffffu /* of the list */

/* The merge of two neighbours; rank and result are SYMBOL_NONE if there is none. left ==
 * SYMBOL_NONE: an empty row. */
struct pair {
    uint32_t left, right, rank, result;
};

enum { PAIR_BITS = 12, N_PAIRS = 1 << PAIR_BITS };

struct work {
    const struct tokenizer *t;
    struct ids *out;
    size_t n_before;    /* ids that were there */
    bool failed;        /* an allocation did; sticky */
    struct pair *pairs; /* found before: each has one row */
    char *joined;       /* room for the longest text that a merge makes */
    struct symbol *symbols;
    size_t symbol_cap;
    uint64_t *heap; /* rank << 32 | left */
    size_t n_heap, heap_cap;
};

/* ---- emitting ---- */

static void put_id(struct work *w, int32_t id)
{
    if (!ids_push(w->out, id)) w->failed = true;
}

/* A token matched as a whole. <bos> right after <bos> says nothing new. */
static void put_special(struct work *w, int32_t id)
{
    const struct ids *out = w->out;
    if (id == w->t->special[SPECIAL_BOS] && out->n && out->data[out->n - 1] == id) return;
    put_id(w, id);
}

/* z is room for a character. */
static struct str symbol_text(const struct tokenizer *t, uint32_t symbol, char *z)
{
    if (symbol < t->n_tok) return token_text(t, symbol);
    if (symbol & SYMBOL_CHAR) return (struct str) { z, utf8_encode(symbol & ~SYMBOL_MUTE, z) };
    return t->extras[symbol - t->n_tok];
}

static void put_symbol(struct work *w, uint32_t symbol)
{
    char z[4];
    if (symbol < w->t->n_tok) {
        put_id(w, (int32_t)symbol);
        return;
    }
    struct str s = symbol_text(w->t, symbol, z);
    for (size_t i = 0; i < s.n; i++) put_id(w, w->t->byte_id[(unsigned char)s.p[i]]);
}

/* ---- BPE ---- */

static uint32_t char_symbol(const struct tokenizer *t, uint32_t cp)
{
    return cp < N_BMP ? t->chars[cp] : tokenizer_char_symbol(t, cp);
}

static bool is_mute(uint32_t symbol)
{
    return (symbol & SYMBOL_MUTE) == SYMBOL_MUTE;
}

static struct pair find_pair(const struct work *w, uint32_t left, uint32_t right)
{
    const struct tokenizer *t = w->t;
    struct pair found = { left, right, SYMBOL_NONE, SYMBOL_NONE };
    char z[2][4];
    bool apart;
    struct str a = symbol_text(t, left, z[0]), b = symbol_text(t, right, z[1]);
    if (a.n + b.n > t->longest || is_mute(left) || is_mute(right)) return found;
    memcpy(w->joined, a.p, a.n);
    memcpy(w->joined + a.n, b.p, b.n);
    uint32_t both = tokenizer_symbol(t, (struct str) { w->joined, a.n + b.n }, &apart);
    if (both != SYMBOL_NONE) found.rank = merge_rank(t, both, a.n);
    if (found.rank != SYMBOL_NONE) found.result = both;
    return found;
}

static const struct pair *pair_of(const struct work *w, uint32_t left, uint32_t right)
{
    uint64_t key = (uint64_t)left << 32 | right;
    struct pair *p = &w->pairs[(key * 0x9e3779b97f4a7c15u) >> (64 - PAIR_BITS)];
    if (p->left != left || p->right != right) *p = find_pair(w, left, right);
    return p;
}

/* Short units: three flat arrays, the lowest rank found by looking at all. */
static void bpe_short(struct work *w, struct str s)
{
    const struct tokenizer *t = w->t;
    uint32_t id[MAX_SHORT], rank[MAX_SHORT], result[MAX_SHORT]; /* of the pair (i, i + 1) */
    size_t n = 0, used;
    for (size_t at = 0; at < s.n; at += used)
        id[n++] = char_symbol(t, text_char(s.p + at, s.n - at, &used));
    for (size_t i = 0; i + 1 < n; i++) {
        const struct pair *m = pair_of(w, id[i], id[i + 1]);
        rank[i] = m->rank;
        result[i] = m->result;
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best]) best = i;
        if (rank[best] == SYMBOL_NONE) break;
        id[best] = result[best];
        n--;
        for (size_t i = best + 1; i < n; i++) {
            id[i] = id[i + 1];
            rank[i - 1] = rank[i];
            result[i - 1] = result[i];
        }
        for (size_t i = best ? best - 1 : 0; i <= best && i + 1 < n; i++) {
            const struct pair *m = pair_of(w, id[i], id[i + 1]);
            rank[i] = m->rank;
            result[i] = m->result;
        }
    }
    for (size_t i = 0; i < n; i++) put_symbol(w, id[i]);
}

static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t x = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (x <= heap[child]) break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

static void heap_push(struct work *w, uint64_t x)
{
    if (w->n_heap == w->heap_cap) {
        uint64_t *heap = mem_grow(w->heap, w->heap_cap * 2, sizeof *heap);
        if (!heap) {
            w->failed = true;
            return;
        }
        w->heap = heap;
        w->heap_cap *= 2;
    }
    size_t i = w->n_heap++;
    for (; i && x < w->heap[(i - 1) / 2]; i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = x;
}

static uint64_t heap_pop(struct work *w)
{
    uint64_t x = w->heap[0];
    w->heap[0] = w->heap[--w->n_heap];
    if (w->n_heap) sift_down(w->heap, w->n_heap, 0);
    return x;
}

/* Look up the pair that begins at symbol i; true when it can merge. */
static bool look_up_pair(struct work *w, uint32_t i)
{
    struct symbol *s = &w->symbols[i];
    s->rank = SYMBOL_NONE;
    if (s->next == END) return false;
    const struct pair *m = pair_of(w, s->id, w->symbols[s->next].id);
    s->rank = m->rank;
    s->result = m->result;
    return s->rank != SYMBOL_NONE;
}

static void queue_pair(struct work *w, uint32_t i)
{
    if (look_up_pair(w, i)) heap_push(w, (uint64_t)w->symbols[i].rank << 32 | i);
}

static bool reserve_long(struct work *w, size_t n)
{
    if (n > w->symbol_cap) {
        struct symbol *symbols = mem_grow(w->symbols, n, sizeof *symbols);
        if (!symbols) return false;
        w->symbols = symbols;
        w->symbol_cap = n;
    }
    if (n > w->heap_cap) {
        uint64_t *heap = mem_grow(w->heap, n, sizeof *heap);
        if (!heap) return false;
        w->heap = heap;
        w->heap_cap = n;
    }
    return true;
}

/* Long units: a heap of pairs by (rank, left), so n symbols cost n log n. A pair that has changed
 * since it was queued is known by its rank, for no two pairs share one. */
static void bpe_long(struct work *w, struct str s, size_t n)
{
    if (w->failed || !reserve_long(w, n)) {
        w->failed = true;
        return;
    }
    size_t used;
    uint32_t n_sym = 0;
    for (size_t at = 0; at < s.n; at += used, n_sym++)
        w->symbols[n_sym] = (struct symbol) {
            .id = char_symbol(w->t, text_char(s.p + at, s.n - at, &used)),
            .prev = n_sym ? n_sym - 1 : END,
            .next = at + used < s.n ? n_sym + 1 : END,
        };
    assert(n_sym == n);

    w->n_heap = 0;
    for (uint32_t i = 0; i < n_sym; i++)
        if (look_up_pair(w, i)) w->heap[w->n_heap++] = (uint64_t)w->symbols[i].rank << 32 | i;
    for (size_t i = w->n_heap / 2; i > 0; i--) sift_down(w->heap, w->n_heap, i - 1);

    while (w->n_heap && !w->failed) {
        uint64_t top = heap_pop(w);
        uint32_t i = (uint32_t)top;
        struct symbol *a = &w->symbols[i];
        if (a->rank != top >> 32) continue;
        struct symbol *b = &w->symbols[a->next];
        a->id = a->result;
        a->next = b->next;
        b->rank = SYMBOL_NONE;
        if (a->next != END) w->symbols[a->next].prev = i;
        if (a->prev != END) queue_pair(w, a->prev);
        queue_pair(w, i);
    }
    for (uint32_t i = 0; i != END; i = w->symbols[i].next) put_symbol(w, w->symbols[i].id);
}

/* ---- cutting ---- */

static bool joins(const struct tokenizer *t, unsigned a, unsigned b)
{
    return t->joins[a][b >> 3] >> (b & 7) & 1;
}

/* Length in bytes of the unit at the start of s, and its length in symbols. */
static size_t unit_end(const struct tokenizer *t, struct str s, size_t *n_sym)
{
    size_t used, at;
    unsigned before = char_class(text_char(s.p, s.n, &used));
    *n_sym = 1;
    for (at = used; at < s.n; at += used, ++*n_sym) {
        unsigned here = char_class(text_char(s.p + at, s.n - at, &used));
        if (!joins(t, before, here)) break;
        before = here;
    }
    return at;
}

/* A run: no newline in it, or nothing else. */
static void encode_run(struct work *w, struct str run)
{
    while (run.n && !w->failed) {
        size_t n_sym;
        size_t n = unit_end(w->t, run, &n_sym);
        struct str unit = { run.p, n };
        if (n_sym <= MAX_SHORT) bpe_short(w, unit);
        else bpe_long(w, unit, n_sym);
        run = (struct str) { run.p + n, run.n - n };
    }
}

/* Text between special tokens. A run of newlines that is a token is that token, merges or not. */
static void encode_fragment(struct work *w, struct str s)
{
    while (s.n) {
        size_t n = 0;
        if (s.p[0] == '\n') {
            while (n < s.n && s.p[n] == '\n') n++;
            int32_t id = tokenizer_find(w->t, (struct str) { s.p, n });
            if (id >= 0 && !token_is_apart(w->t, (uint32_t)id)) put_id(w, id);
            else encode_run(w, (struct str) { s.p, n });
        } else {
            const char *stop = memchr(s.p, '\n', s.n);
            n = stop ? (size_t)(stop - s.p) : s.n;
            encode_run(w, (struct str) { s.p, n });
        }
        s = (struct str) { s.p + n, s.n - n };
    }
}

/* ---- special tokens ---- */

static unsigned byte_at(const struct tokenizer *t, uint32_t i, size_t depth)
{
    return (unsigned char)t->specials[i].text.p[depth];
}

/* First index in [lo, hi) whose byte `depth` is not below c. All there are longer than depth. */
static uint32_t lower_bound(const struct tokenizer *t, uint32_t lo, uint32_t hi, size_t depth,
                            unsigned c)
{
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (byte_at(t, mid, depth) < c) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* The longest special token at the start of s, or NULL. Each byte narrows the sorted list. */
static const struct special_text *match_special(const struct tokenizer *t, struct str s, bool plain)
{
    const struct special_text *best = NULL;
    unsigned c = (unsigned char)s.p[0];
    uint32_t lo = t->special_from[c], hi = t->special_from[c + 1];
    for (size_t depth = 1; lo < hi; depth++) {
        for (; lo < hi && t->specials[lo].text.n == depth; lo++) {
            const struct special_text *x = &t->specials[lo];
            if (best && best->text.n == depth) continue; /* the same text again */
            if (!plain || token_is_word(t, (uint32_t)x->id)) best = x;
        }
        if (depth == s.n) break;
        c = (unsigned char)s.p[depth];
        if (lo == hi) break;
        if (byte_at(t, lo, depth) != c) lo = lower_bound(t, lo, hi, depth, c);
        if (lo < hi && byte_at(t, hi - 1, depth) != c) hi = lower_bound(t, lo, hi, depth, c + 1);
    }
    return best;
}

/* Leftmost match first, the longest at one place. For tokens that do not overlap each other's
 * insides, as those written <...> never do, this is what testing them longest first gives. */
static void encode_text(struct work *w, struct str s, bool plain)
{
    size_t from = 0;
    for (size_t at = 0; at < s.n && !w->failed;) {
        const struct special_text *x = NULL;
        if (w->t->starts[plain][(unsigned char)s.p[at]])
            x = match_special(w->t, (struct str) { s.p + at, s.n - at }, plain);
        if (!x) {
            at++;
            continue;
        }
        encode_fragment(w, (struct str) { s.p + from, at - from });
        put_special(w, x->id);
        from = at += x->text.n;
    }
    encode_fragment(w, (struct str) { s.p + from, s.n - from });
}

/* Marks, and plain text between them. A mark that the vocabulary has no token for is text too. */
static void encode_marked(struct work *w, const struct marked *m)
{
    size_t from = 0;
    for (size_t i = 0; i < m->n_marks && !w->failed; i++) {
        const struct mark *mark = &m->marks[i];
        int32_t id = w->t->special[mark->which];
        if (id < 0) continue;
        encode_text(w, (struct str) { m->text.data + from, mark->at - from }, true);
        put_special(w, id);
        from = mark->at + special_text(mark->which).n;
    }
    encode_text(w, (struct str) { m->text.data + from, m->text.n - from }, true);
}

static enum bz_status work_open(struct work *w, const struct tokenizer *t, size_t n_text,
                                bool no_bos, struct ids *out, struct bz_err *err)
{
    if (n_text > INT32_MAX)
        return fail(err, BZ_ERR_LIMIT, "a text of %zu bytes is more than can be tokenized at once",
                    n_text);
    *w = (struct work) { .t = t,
                         .out = out,
                         .n_before = out->n,
                         .pairs = mem_grow(NULL, N_PAIRS, sizeof *w->pairs),
                         .joined = mem_grow(NULL, t->longest, 1) };
    w->failed = !w->pairs || !w->joined;
    if (w->pairs) memset(w->pairs, 0xff, N_PAIRS * sizeof *w->pairs); /* SYMBOL_NONE */
    if (!no_bos && t->special[SPECIAL_BOS] >= 0) put_special(w, t->special[SPECIAL_BOS]);
    return BZ_OK;
}

static enum bz_status work_close(struct work *w, size_t n_text, struct bz_err *err)
{
    mem_free(w->pairs);
    mem_free(w->joined);
    mem_free(w->symbols);
    mem_free(w->heap);
    if (!w->failed) return BZ_OK;
    w->out->n = w->n_before;
    return fail_memory(err, n_text);
}

enum bz_status tokenizer_encode(const struct tokenizer *t, struct str text,
                                struct tokenize_options opt, struct ids *out, struct bz_err *err)
{
    struct work w;
    enum bz_status st = work_open(&w, t, text.n, opt.no_bos, out, err);
    if (st) return st;
    if (text.n) encode_text(&w, text, opt.plain); /* an empty text may have no address */
    return work_close(&w, text.n, err);
}

enum bz_status tokenizer_encode_marked(const struct tokenizer *t, const struct marked *m,
                                       bool no_bos, struct ids *out, struct bz_err *err)
{
    struct work w;
    enum bz_status st = work_open(&w, t, m->text.n, no_bos, out, err);
    if (st) return st;
    if (m->text.n) encode_marked(&w, m);
    return work_close(&w, m->text.n, err);
}
