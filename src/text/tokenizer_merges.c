/* tokenizer_merges.c - the merges of a GGUF, turned into tables over symbols.
 *
 * It owns the list of merges, the texts that merges make but that are no tokens (extras), the table
 * of classes that some merge joins, and the table from code points to symbols.
 */
#include <inttypes.h>

#include "text/tokenizer_impl.h"

#define MIN_EXTRAS 64u

uint32_t tokenizer_symbol(const struct tokenizer *t, struct str s, bool *apart)
{
    uint32_t i;
    bool is_token = strmap_find(&t->by_text, s, &i);
    *apart = is_token && token_is_apart(t, i);
    if (is_token) return *apart ? SYMBOL_NONE : i;
    return strmap_find(&t->by_extra, s, &i) ? t->n_tok + i : SYMBOL_NONE;
}

uint32_t tokenizer_char_symbol(const struct tokenizer *t, uint32_t cp)
{
    char z[4];
    bool apart;
    uint32_t symbol = tokenizer_symbol(t, (struct str) { z, utf8_encode(cp, z) }, &apart);
    return symbol != SYMBOL_NONE ? symbol : (apart ? SYMBOL_MUTE : SYMBOL_CHAR) | cp;
}

static bool grow_extras(struct tokenizer *t)
{
    uint32_t cap = t->extra_cap ? t->extra_cap * 2 : MIN_EXTRAS;
    struct str *extras = mem_grow(t->extras, cap, sizeof *extras);
    if (!extras) return false;
    t->extras = extras;
    uint32_t *last = mem_grow(t->last_merge, (size_t)t->n_tok + cap, sizeof *last);
    if (!last) return false;
    t->last_merge = last;
    struct strmap map;
    if (!strmap_init(&map, cap)) return false;
    for (uint32_t i = 0; i < t->n_extras; i++) strmap_add(&map, extras[i], i);
    strmap_free(&t->by_extra);
    t->by_extra = map;
    t->extra_cap = cap;
    return true;
}

/* The symbol of a text, made if need be. SYMBOL_NONE: a token apart, or (*st) no memory. */
static uint32_t intern(struct tokenizer *t, struct str s, enum bz_status *st)
{
    bool apart;
    uint32_t symbol = tokenizer_symbol(t, s, &apart);
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
    symbol = t->n_tok + t->n_extras++;
    t->last_merge[symbol] = SYMBOL_NONE;
    return symbol;
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

struct merge_reader {
    const struct gguf_kv *kv;
    uint64_t cursor;
    uint32_t n;        /* that were read */
    uint32_t result;   /* the token that the last one made */
    struct buf joined; /* a text of both parts */
};

/* "left right", cut at the first space after the first byte. */
static enum bz_status cut_merge(struct str s, uint32_t rank, struct str *parts, struct bz_err *err)
{
    size_t n = 1;
    while (n < s.n && s.p[n] != ' ') n++;
    if (n + 1 >= s.n)
        return fail(err, BZ_ERR_FORMAT,
                    "merge %" PRIu32 " of tokenizer.ggml.merges is not two pieces with a space "
                    "between them",
                    rank);
    if (s.n - 1 > MAX_MERGED)
        return fail(err, BZ_ERR_FORMAT,
                    "merge %" PRIu32 " of tokenizer.ggml.merges makes a text of %zu bytes; %u is "
                    "the most",
                    rank, s.n - 1, MAX_MERGED);
    parts[0] = (struct str) { s.p, n };
    parts[1] = (struct str) { s.p + n + 1, s.n - n - 1 };
    return BZ_OK;
}

/* memcmp would be called; parts are short. */
static bool begins_with(const char *p, struct str s)
{
    size_t i = 0;
    while (i < s.n && p[i] == s.p[i]) i++;
    return i == s.n;
}

static bool is_joined(struct str s, const struct str *parts)
{
    return s.n == parts[0].n + parts[1].n && begins_with(s.p, parts[0]) &&
           begins_with(s.p + parts[0].n, parts[1]);
}

/* The symbol of the text of both parts. Files list merges by the tokens that they make, so it is
 * mostly the symbol of the merge before, or the next one. */
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
    uint32_t symbol = intern(t, buf_str(&b->joined), st);
    if (symbol < t->n_tok) b->result = symbol;
    return symbol;
}

static enum bz_status add_merge(struct tokenizer *t, struct str s, struct bz_err *err)
{
    struct merge_reader *b = t->reader;
    struct str parts[2];
    enum bz_status st = cut_merge(s, b->n, parts, err);
    if (st) return st;
    uint32_t symbol = intern_both(t, b, parts, &st), rank = b->n++;
    if (st) return fail_memory(err, s.n);
    /* A merge that is there already would never count, but slow down every later lookup. */
    if (symbol == SYMBOL_NONE || merge_rank(t, symbol, parts[0].n) != SYMBOL_NONE) return BZ_OK;
    t->merges[rank] = (struct merge) { t->last_merge[symbol], (uint32_t)parts[0].n };
    t->last_merge[symbol] = rank;
    if (s.n - 1 > t->longest) t->longest = s.n - 1;
    unsigned before = last_class(parts[0]), after = first_class(parts[1]);
    t->joins[before][after >> 3] |= (uint8_t)(1u << (after & 7));
    return BZ_OK;
}

static bool alloc_merges(struct tokenizer *t, uint64_t n)
{
    t->merges = mem_grow(NULL, (size_t)n, sizeof *t->merges);
    t->last_merge = mem_grow(NULL, t->n_tok, sizeof *t->last_merge);
    if (!t->merges || !t->last_merge) return false;
    memset(t->last_merge, 0xff, t->n_tok * sizeof *t->last_merge); /* SYMBOL_NONE */
    return true;
}

/* A token of exactly one character, in its shortest form, is that character's symbol. Of several
 * such tokens the first counts. */
static void note_char(struct tokenizer *t, uint32_t id)
{
    struct str s = token_text(t, id);
    size_t used;
    char z[4];
    if (s.n == 0 || s.n > 3) return;
    uint32_t cp = text_char(s.p, s.n, &used);
    if (used != s.n || utf8_encode(cp, z) != s.n || memcmp(z, s.p, s.n) != 0) return;
    if (t->chars[cp] == (SYMBOL_CHAR | cp))
        t->chars[cp] = token_is_apart(t, id) ? SYMBOL_MUTE | cp : id;
}

static enum bz_status fill_chars(struct tokenizer *t, struct bz_err *err)
{
    t->chars = mem_alloc(N_BMP, sizeof *t->chars);
    if (!t->chars) return fail_memory(err, N_BMP * sizeof *t->chars);
    for (uint32_t cp = 0; cp < N_BMP; cp++) t->chars[cp] = SYMBOL_CHAR | cp;
    for (uint32_t i = 0; i < t->n_tok; i++) note_char(t, i);
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
    if (!alloc_merges(t, kv->n)) return fail_memory(err, kv->n * sizeof *t->merges);
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
    for (; n > 0 && b->n < b->kv->n && !st; n--) {
        struct str s;
        st = gguf_next_str(b->kv, &b->cursor, &s)
                 ? add_merge(t, s, err)
                 : fail(err, BZ_ERR_FORMAT, "tokenizer.ggml.merges ends at merge %" PRIu32, b->n);
    }
    *more = b->n < b->kv->n;
    return st || *more ? st : fill_chars(t, err);
}
