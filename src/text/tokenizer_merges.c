/* tokenizer_merges.c - the merges of a GGUF, turned into tables over symbols.
 *
 * It owns the merge table, the texts that merges speak of but that are no tokens (extras), the table
 * of classes that some merge joins, and the table from code points to symbols.
 */
#include <inttypes.h>

#include "text/tokenizer_impl.h"

#define MIN_EXTRAS 64u

/* SYMBOL_NONE: unknown, or a token that BPE never makes (*apart). `token` is what the vocabulary has of that text. */
static uint32_t find_symbol(const struct tokenizer *t, struct str s, uint32_t token, bool *apart)
{
    uint32_t i;
    *apart = token != STRMAP_NONE && token_is_apart(t, token);
    if (token != STRMAP_NONE) return *apart ? SYMBOL_NONE : token;
    return strmap_find(&t->by_extra, s, &i) ? t->n_tok + i : SYMBOL_NONE;
}

uint32_t tokenizer_char_symbol(const struct tokenizer *t, uint32_t cp)
{
    char z[4];
    bool apart;
    struct str s = { z, utf8_encode(cp, z) };
    uint32_t token, symbol;
    strmap_find_many(&t->by_text, &s, &token, 1);
    symbol = find_symbol(t, s, token, &apart);
    return symbol == SYMBOL_NONE ? SYMBOL_CHAR | cp : symbol;
}

static bool grow_extras(struct tokenizer *t)
{
    uint32_t cap = t->extra_cap ? t->extra_cap * 2 : MIN_EXTRAS;
    struct str *extras = mem_grow(t->extras, cap, sizeof *extras);
    if (!extras) return false;
    t->extras = extras;
    struct strmap map;
    if (!strmap_init(&map, cap)) return false;
    for (uint32_t i = 0; i < t->n_extras; i++) strmap_add(&map, extras[i], i);
    strmap_free(&t->by_extra);
    t->by_extra = map;
    t->extra_cap = cap;
    return true;
}

/* The symbol of a text, made if need be. SYMBOL_NONE: a token apart, or (*st) no memory. */
static uint32_t intern(struct tokenizer *t, struct str s, uint32_t token, enum bz_status *st)
{
    bool apart;
    uint32_t symbol = find_symbol(t, s, token, &apart);
    if (symbol != SYMBOL_NONE || apart) return symbol;

    char *p = NULL;
    bool room = t->n_tok + t->n_extras < SYMBOL_CHAR - 1;
    if (room && (t->n_extras < t->extra_cap || grow_extras(t)))
        p = arena_copy_str(&t->extra_text, s.p, s.n);
    if (!p) {
        *st = BZ_ERR_MEMORY;
        return SYMBOL_NONE;
    }
    t->extras[t->n_extras] = (struct str) { p, s.n };
    strmap_add(&t->by_extra, t->extras[t->n_extras], t->n_extras);
    return t->n_tok + t->n_extras++;
}

static unsigned first_class(struct str s)
{
    size_t used;
    return char_class(text_char(s.p, s.n, &used));
}

static unsigned last_class(struct str s)
{
    size_t at = s.n - 1;
    while (at > 0 && s.n - at < 4 && ((unsigned char)s.p[at] & 0xc0) == 0x80) at--;
    return first_class((struct str) { s.p + at, s.n - at });
}

/* From row i on. */
static void add_merge(struct tokenizer *t, uint32_t i, struct merge new)
{
    for (; t->merges[i].left != SYMBOL_NONE; i = (i + 1) & t->merge_mask)
        if (t->merges[i].left == new.left && t->merges[i].right == new.right) return;
    t->merges[i] = new;
}

/* Merges are read some at a time, so that the tables are searched for all of their texts together. */
enum { AT_ONCE = 64 };

struct merge_reader {
    const struct gguf_kv *kv;
    uint64_t cursor;
    uint32_t first, n;            /* ranks of those that wait */
    struct str text[2 * AT_ONCE]; /* left, right */
    uint32_t token[2 * AT_ONCE];
    struct merge merge[AT_ONCE];
    uint32_t row[AT_ONCE]; /* where each may go, or after it */
    uint32_t result;       /* the token that the last one made */
    struct buf joined;     /* a text of both */
};

/* "left right", cut at the first space after the first byte. */
static enum bz_status cut_merge(struct merge_reader *b, struct str s, struct bz_err *err)
{
    const char *space = s.n > 1 ? memchr(s.p + 1, ' ', s.n - 1) : NULL;
    if (!space || space + 1 == s.p + s.n)
        return fail(err, BZ_ERR_FORMAT,
                    "merge %" PRIu32 " of tokenizer.ggml.merges is not two pieces with a space "
                    "between them",
                    b->first + b->n);
    struct str *text = b->text + 2 * b->n++;
    text[0] = (struct str) { s.p, (size_t)(space - s.p) };
    text[1] = (struct str) { space + 1, s.n - text[0].n - 1 };
    return BZ_OK;
}

static bool is_joined(struct str s, const struct str *parts)
{
    return s.n == parts[0].n + parts[1].n && memcmp(s.p, parts[0].p, parts[0].n) == 0 &&
           memcmp(s.p + parts[0].n, parts[1].p, parts[1].n) == 0;
}

/* The symbol of both parts' text. Files list merges by the tokens that they make, so mostly it is that of the merge
 * before, or the next one. */
static uint32_t intern_both(struct tokenizer *t, struct merge_reader *b, const struct str *parts,
                            enum bz_status *st)
{
    for (uint32_t id = b->result; id < t->n_tok && id - b->result < 2 && !t->has_twins; id++) {
        if (!is_joined(token_text(t, id), parts)) continue;
        b->result = id;
        return token_is_apart(t, id) ? SYMBOL_NONE : id;
    }
    b->joined.n = 0;
    buf_put_str(&b->joined, parts[0]);
    buf_put_str(&b->joined, parts[1]);
    if (b->joined.failed) {
        *st = BZ_ERR_MEMORY;
        return SYMBOL_NONE;
    }
    struct str both = buf_str(&b->joined);
    uint32_t token;
    strmap_find_many(&t->by_text, &both, &token, 1);
    if (token != STRMAP_NONE) b->result = token;
    return intern(t, both, token, st);
}

static enum bz_status add_batch(struct tokenizer *t, struct merge_reader *b, struct bz_err *err)
{
    strmap_find_many(&t->by_text, b->text, b->token, 2 * (size_t)b->n);
    for (uint32_t i = 0; i < b->n; i++) {
        const struct str *text = b->text + 2 * i;
        const uint32_t *token = b->token + 2 * i;
        enum bz_status st = BZ_OK;
        struct merge *m = &b->merge[i];
        m->rank = b->first + i;
        m->left = intern(t, text[0], token[0], &st);
        m->right = intern(t, text[1], token[1], &st);
        m->result = intern_both(t, b, text, &st);
        if (st) return fail_memory(err, text[0].n + text[1].n);
    }
    for (uint32_t i = 0; i < b->n; i++) { /* no load here waits for another */
        const struct merge *m = &b->merge[i];
        uint32_t row = merge_row(t, m->left, m->right), left = t->merges[row].left;
        b->row[i] = (row + (left != SYMBOL_NONE && left != m->left)) & t->merge_mask;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        const struct merge *m = &b->merge[i];
        if (m->left == SYMBOL_NONE || m->right == SYMBOL_NONE || m->result == SYMBOL_NONE) continue;
        add_merge(t, b->row[i], *m);
        unsigned before = last_class(b->text[2 * i]), after = first_class(b->text[2 * i + 1]);
        t->joins[before][after >> 3] |= (uint8_t)(1u << (after & 7));
    }
    b->first += b->n;
    b->n = 0;
    return BZ_OK;
}

static bool alloc_merges(struct tokenizer *t, uint64_t n)
{
    unsigned bits = 4;
    while (((uint64_t)1 << bits) / 3 * 2 < n) bits++;
    if (bits > 31) return false;
    uint32_t n_rows = 1u << bits;
    t->merges = mem_grow(NULL, n_rows, sizeof *t->merges);
    if (!t->merges) return false;
    t->merge_mask = n_rows - 1;
    t->merge_shift = 64 - bits;
    memset(t->merges, 0xff, n_rows * sizeof *t->merges); /* SYMBOL_NONE in every field */
    return true;
}

/* A token of exactly one character, in its shortest form, is that character's symbol. */
static void note_char(struct tokenizer *t, struct str s, uint32_t symbol)
{
    size_t used;
    char z[4];
    if (s.n == 0 || s.n > 3) return;
    uint32_t cp = text_char(s.p, s.n, &used);
    if (used != s.n || utf8_encode(cp, z) != s.n || memcmp(z, s.p, s.n) != 0) return;
    if (t->chars[cp] & SYMBOL_CHAR) t->chars[cp] = symbol;
}

static enum bz_status fill_chars(struct tokenizer *t, struct bz_err *err)
{
    t->chars = mem_alloc(N_BMP, sizeof *t->chars);
    if (!t->chars) return fail_memory(err, N_BMP * sizeof *t->chars);
    for (uint32_t cp = 0; cp < N_BMP; cp++) t->chars[cp] = SYMBOL_CHAR | cp;
    for (uint32_t i = 0; i < t->n_tok; i++)
        if (!token_is_apart(t, i)) note_char(t, token_text(t, i), i);
    for (uint32_t i = 0; i < t->n_extras; i++) note_char(t, t->extras[i], t->n_tok + i);
    t->chars[' '] = t->chars[SPACE_CHAR];
    return BZ_OK;
}

enum bz_status tokenizer_begin_merges(struct tokenizer *t, const struct gguf *g, struct bz_err *err)
{
    const struct gguf_kv *kv = gguf_find(g, "tokenizer.ggml.merges");
    if (!kv) return fail(err, BZ_ERR_FORMAT, "the file has no tokenizer.ggml.merges");
    if (kv->type != GGUF_ARRAY || kv->elem != GGUF_STRING)
        return fail(err, BZ_ERR_FORMAT, "tokenizer.ggml.merges is not an array of strings");
    if (kv->n > INT32_MAX || kv->n > kv->n_bytes / 8)
        return fail(err, BZ_ERR_FORMAT,
                    "tokenizer.ggml.merges claims %" PRIu64 " entries in %" PRIu64 " bytes", kv->n,
                    kv->n_bytes);
    if (!alloc_merges(t, kv->n)) return fail_memory(err, kv->n * 2 * sizeof *t->merges);
    t->reader = mem_alloc(1, sizeof *t->reader);
    if (!t->reader) return fail_memory(err, sizeof *t->reader);
    t->reader->kv = kv;
    return BZ_OK;
}

void tokenizer_end_merges(struct tokenizer *t)
{
    if (t->reader) buf_free(&t->reader->joined);
    mem_free(t->reader);
    t->reader = NULL;
}

enum bz_status tokenizer_read_merges(struct tokenizer *t, uint32_t n, bool *more,
                                     struct bz_err *err)
{
    struct merge_reader *b = t->reader;
    enum bz_status st = BZ_OK;
    for (; n > 0 && b->first + b->n < b->kv->n && !st; n--) {
        struct str s;
        st = gguf_next_str(b->kv, &b->cursor, &s)
                 ? cut_merge(b, s, err)
                 : fail(err, BZ_ERR_FORMAT, "tokenizer.ggml.merges ends at merge %" PRIu32,
                        b->first + b->n);
        if (!st && b->n == AT_ONCE) st = add_batch(t, b, err);
    }
    *more = b->first + b->n < b->kv->n;
    if (st || *more) return st;
    st = add_batch(t, b, err);
    return st ? st : fill_chars(t, err);
}
