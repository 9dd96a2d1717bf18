/* tokenizer.c - a vocabulary read from a GGUF: texts, types, special tokens, and questions about
 * them. Merges are tokenizer_merges.c's, text to ids tokenizer_encode.c's, ids to text detok.c's.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "io/quote.h"
#include "text/tokenizer_impl.h"

/* The tokens the chat format is made of. Files disagree about their types (one writes <eos> as
 * normal, another is not known to mark any), so the type here wins over the file's. Those that a
 * parser of the output must see are user-defined; <|tool_response> ends generation and is not. */
static const struct {
    const char *text;
    enum token_type type;
} known[N_SPECIAL] = {
    [SPECIAL_PAD] = { "<pad>", TOKEN_CONTROL },
    [SPECIAL_EOS] = { "<eos>", TOKEN_CONTROL },
    [SPECIAL_BOS] = { "<bos>", TOKEN_CONTROL },
    [SPECIAL_UNK] = { "<unk>", TOKEN_CONTROL },
    [SPECIAL_MASK] = { "<mask>", TOKEN_CONTROL },
    [SPECIAL_THINK] = { "<|think|>", TOKEN_CONTROL },
    [SPECIAL_CHANNEL] = { "<|channel>", TOKEN_USER_DEFINED },
    [SPECIAL_CHANNEL_END] = { "<channel|>", TOKEN_USER_DEFINED },
    [SPECIAL_TURN] = { "<|turn>", TOKEN_CONTROL },
    [SPECIAL_TURN_END] = { "<turn|>", TOKEN_CONTROL },
    [SPECIAL_TOOL] = { "<|tool>", TOKEN_CONTROL },
    [SPECIAL_TOOL_END] = { "<tool|>", TOKEN_CONTROL },
    [SPECIAL_CALL] = { "<|tool_call>", TOKEN_USER_DEFINED },
    [SPECIAL_CALL_END] = { "<tool_call|>", TOKEN_USER_DEFINED },
    [SPECIAL_RESPONSE] = { "<|tool_response>", TOKEN_CONTROL },
    [SPECIAL_RESPONSE_END] = { "<tool_response|>", TOKEN_USER_DEFINED },
    [SPECIAL_QUOTE] = { "<|\"|>", TOKEN_USER_DEFINED },
    [SPECIAL_IMAGE_BEGIN] = { "<|image>", TOKEN_CONTROL },
    [SPECIAL_IMAGE] = { "<|image|>", TOKEN_CONTROL },
    [SPECIAL_IMAGE_END] = { "<image|>", TOKEN_CONTROL },
    [SPECIAL_AUDIO_BEGIN] = { "<|audio>", TOKEN_CONTROL },
    [SPECIAL_AUDIO] = { "<|audio|>", TOKEN_CONTROL },
    [SPECIAL_AUDIO_END] = { "<audio|>", TOKEN_CONTROL },
    [SPECIAL_VIDEO] = { "<|video|>", TOKEN_CONTROL },
};

struct str special_text(enum special which)
{
    return str_of(known[which].text);
}

static const enum special ends[] = { SPECIAL_EOS, SPECIAL_TURN_END, SPECIAL_RESPONSE };

static enum bz_status check_model(const struct gguf *g, struct bz_err *err)
{
    struct str model, pre;
    if (!gguf_get_str(g, "tokenizer.ggml.model", &model))
        return fail(err, BZ_ERR_FORMAT, "the file has no tokenizer.ggml.model");
    /* Ollama's own converter writes this tokenizer as "llama" with pre "gemma4". */
    if (!str_is(model, "gemma4") && !str_is(model, "llama"))
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "tokenizer.ggml.model is \"%s\"; this build reads \"gemma4\"", quote(model).z);
    if (gguf_get_str(g, "tokenizer.ggml.pre", &pre) && !str_is(pre, "gemma4"))
        return fail(err, BZ_ERR_UNSUPPORTED,
                    "tokenizer.ggml.pre is \"%s\"; this build reads \"gemma4\"", quote(pre).z);
    return BZ_OK;
}

/* An array of one entry per token: strings (of_strings) or numbers. */
static enum bz_status need_array(const struct gguf *g, const char *key, bool of_strings,
                                 const struct gguf_kv **out, struct bz_err *err)
{
    const struct gguf_kv *kv = gguf_find(g, key);
    if (!kv) return fail(err, BZ_ERR_FORMAT, "the file has no %s", key);
    if (kv->type != GGUF_ARRAY || (kv->elem == GGUF_STRING) != of_strings || kv->elem == GGUF_ARRAY)
        return fail(err, BZ_ERR_FORMAT, "%s is not an array of %s", key,
                    of_strings ? "strings" : "numbers");
    *out = kv;
    return BZ_OK;
}

static enum bz_status find_tokens(struct tokenizer *t, const struct gguf *g, struct bz_err *err)
{
    const struct gguf_kv *kv = NULL;
    enum bz_status st = need_array(g, "tokenizer.ggml.tokens", true, &kv, err);
    if (st) return st;
    if (kv->n == 0 || kv->n > INT32_MAX)
        return fail(err, BZ_ERR_FORMAT,
                    "tokenizer.ggml.tokens has %" PRIu64
                    " entries; 1 to 2147483647 can be numbered",
                    kv->n);
    if (kv->n > kv->n_bytes / 8 || kv->n_bytes - 8 * kv->n > UINT32_MAX)
        return fail(err, BZ_ERR_FORMAT,
                    "tokenizer.ggml.tokens claims %" PRIu64 " entries in %" PRIu64 " bytes", kv->n,
                    kv->n_bytes);
    t->n_tok = (uint32_t)kv->n;
    t->tokens = kv;
    return BZ_OK;
}

/* A string costs eight bytes more in the file than its text, so this cannot be too small. */
static size_t text_bytes(const struct tokenizer *t)
{
    return (size_t)(t->tokens->n_bytes - 8 * t->tokens->n);
}

enum { AT_ONCE = 64 }; /* tokens that are put into the table together */

static enum bz_status alloc_tokens(struct tokenizer *t, struct bz_err *err)
{
    t->text = mem_alloc(text_bytes(t), 1);
    t->start = mem_alloc((size_t)t->n_tok + 1, sizeof *t->start);
    t->kind = mem_alloc(t->n_tok, 1);
    if (!t->text || !t->start || !t->kind || !strmap_init(&t->by_text, t->n_tok))
        return fail_memory(err, text_bytes(t) + (uint64_t)t->n_tok * 25);
    return BZ_OK;
}

/* The next n of them, AT_ONCE at most, or those that are left. */
static enum bz_status copy_some(struct tokenizer *t, uint32_t n, struct bz_err *err)
{
    struct str texts[AT_ONCE];
    uint32_t ids[AT_ONCE], n_texts = 0;
    for (; n > 0 && t->n_copied < t->n_tok; n--, t->n_copied++) {
        uint32_t i = t->n_copied, at = t->start[i];
        struct str s;
        if (!gguf_next_str(t->tokens, &t->cursor, &s) || s.n > text_bytes(t) - at)
            return fail(err, BZ_ERR_FORMAT, "tokenizer.ggml.tokens ends at token %" PRIu32, i);
        t->start[i + 1] = at + (uint32_t)s.n;
        if (s.n == 0) continue;
        memcpy(t->text + at, s.p, s.n);
        texts[n_texts] = token_text(t, i);
        ids[n_texts++] = i;
    }
    if (strmap_add_many(&t->by_text, texts, ids, n_texts) < n_texts) t->has_twins = true;
    return BZ_OK;
}

static enum bz_status copy_tokens(struct tokenizer *t, uint32_t n, struct bz_err *err)
{
    enum bz_status st = t->start ? BZ_OK : alloc_tokens(t, err);
    for (uint32_t some; n > 0 && t->n_copied < t->n_tok && !st; n -= some) {
        some = n < AT_ONCE ? n : AT_ONCE;
        st = copy_some(t, some, err);
    }
    return st;
}

static enum bz_status read_types(struct tokenizer *t, const struct gguf *g, struct bz_err *err)
{
    const struct gguf_kv *kv = NULL;
    enum bz_status st = need_array(g, "tokenizer.ggml.token_type", false, &kv, err);
    if (st) return st;
    const struct gguf_kv *scores = gguf_find(g, "tokenizer.ggml.scores"); /* of no use, if there */
    if (kv->n != t->n_tok || (scores && scores->n != t->n_tok))
        return fail(err, BZ_ERR_FORMAT, "%s has %" PRIu64 " entries for %" PRIu32 " tokens",
                    kv->n != t->n_tok ? "tokenizer.ggml.token_type" : "tokenizer.ggml.scores",
                    kv->n != t->n_tok ? kv->n : scores->n, t->n_tok);
    for (uint32_t i = 0; i < t->n_tok; i++) {
        int64_t type;
        if (!gguf_at_i64(kv, i, &type) || type < TOKEN_NORMAL || type > TOKEN_BYTE)
            return fail(err, BZ_ERR_FORMAT,
                        "tokenizer.ggml.token_type has no type from 1 to 6 for token %" PRIu32, i);
        t->kind[i] = (uint8_t)type;
    }
    return BZ_OK;
}

int tokenizer_byte_value(struct str s)
{
    static const char hex[] = "0123456789ABCDEF";
    if (s.n != 6 || memcmp(s.p, "<0x", 3) != 0 || s.p[5] != '>') return -1;
    const char *hi = memchr(hex, s.p[3], 16), *lo = memchr(hex, s.p[4], 16);
    return hi && lo ? (int)(hi - hex) * 16 + (int)(lo - hex) : -1;
}

/* A second token of a special one's text is as special: plain text must not reach it either. */
static void mark_twin(struct tokenizer *t, uint32_t id)
{
    int32_t first = tokenizer_find(t, token_text(t, id));
    if (first >= 0 && (t->kind[first] & KIND_MARK)) t->kind[id] = t->kind[first];
}

/* What a token's text says outranks its type: the known special tokens and the byte tokens. */
static enum bz_status mark_by_text(struct tokenizer *t, struct bz_err *err)
{
    for (int i = 0; i < N_SPECIAL; i++) {
        t->special[i] = tokenizer_find(t, str_of(known[i].text));
        if (t->special[i] >= 0) t->kind[t->special[i]] = (uint8_t)(known[i].type | KIND_MARK);
    }
    for (int i = 0; i < 256; i++) t->byte_id[i] = -1;
    for (uint32_t i = 0; i < t->n_tok; i++) {
        if (t->has_twins) mark_twin(t, i);
        int byte = tokenizer_byte_value(token_text(t, i));
        if (byte >= 0) {
            t->kind[i] = TOKEN_BYTE;
            if (t->byte_id[byte] < 0) t->byte_id[byte] = (int32_t)i;
        } else if (token_kind(t, i) == TOKEN_BYTE) {
            return fail(err, BZ_ERR_FORMAT,
                        "token %" PRIu32 " is a byte by its type, but its text is not like <0x2F>",
                        i);
        }
    }
    for (int i = 0; i < 256; i++)
        if (t->byte_id[i] < 0)
            return fail(err, BZ_ERR_FORMAT,
                        "the vocabulary has no token <0x%02X>, so not every text can be written",
                        (unsigned)i);
    return BZ_OK;
}

static enum bz_status check_id(const struct tokenizer *t, const struct gguf_kv *kv, uint64_t i,
                               int64_t *id, struct bz_err *err)
{
    if (!gguf_at_i64(kv, i, id))
        return fail(err, BZ_ERR_FORMAT, "%.*s does not hold token ids", STR_ARG(kv->key));
    if (*id < 0 || *id >= t->n_tok)
        return fail(err, BZ_ERR_FORMAT, "%.*s names token %" PRId64 "; the vocabulary has %" PRIu32,
                    STR_ARG(kv->key), *id, t->n_tok);
    return BZ_OK;
}

static enum bz_status read_ends(struct tokenizer *t, const struct gguf *g, struct bz_err *err)
{
    static const char *const keys[] = { "tokenizer.ggml.eos_token_id",
                                        "tokenizer.ggml.eos_token_ids" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (t->special[ends[i]] >= 0) t->kind[t->special[ends[i]]] |= KIND_END;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const struct gguf_kv *kv = gguf_find(g, keys[k]);
        for (uint64_t i = 0; kv && i < kv->n; i++) {
            int64_t id;
            enum bz_status st = check_id(t, kv, i, &id, err);
            if (st) return st;
            t->kind[id] |= KIND_END;
        }
    }
    return BZ_OK;
}

static enum bz_status read_suppressed(struct tokenizer *t, const struct gguf *g, struct bz_err *err)
{
    const struct gguf_kv *kv = gguf_find(g, "tokenizer.ggml.suppress_tokens");
    if (!kv) return BZ_OK;
    if (kv->n > kv->n_bytes) return fail(err, BZ_ERR_FORMAT, "%.*s is cut short", STR_ARG(kv->key));
    t->suppressed = mem_alloc((size_t)kv->n, sizeof *t->suppressed);
    if (!t->suppressed) return fail_memory(err, kv->n * sizeof *t->suppressed);
    for (uint64_t i = 0; i < kv->n; i++) {
        int64_t id;
        enum bz_status st = check_id(t, kv, i, &id, err);
        if (st) return st;
        t->suppressed[t->n_suppressed++] = (int32_t)id;
    }
    return BZ_OK;
}

static int by_bytes(const void *a, const void *b)
{
    const struct special_text *x = a, *y = b;
    size_t n = x->text.n < y->text.n ? x->text.n : y->text.n;
    int order = memcmp(x->text.p, y->text.p, n);
    if (order) return order;
    if (x->text.n != y->text.n) return x->text.n < y->text.n ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_matched(enum token_type type)
{
    return type == TOKEN_CONTROL || type == TOKEN_USER_DEFINED || type == TOKEN_UNKNOWN;
}

static enum bz_status sort_specials(struct tokenizer *t, struct bz_err *err)
{
    size_t n = 0;
    for (uint32_t i = 0; i < t->n_tok; i++) n += is_matched(token_kind(t, i));
    t->specials = mem_alloc(n, sizeof *t->specials);
    if (!t->specials) return fail_memory(err, n * sizeof *t->specials);
    for (uint32_t i = 0; i < t->n_tok; i++) {
        struct str text = token_text(t, i);
        if (!is_matched(token_kind(t, i)) || text.n == 0) continue;
        if (text.n > MAX_SPECIAL)
            return fail(err, BZ_ERR_FORMAT,
                        "token %" PRIu32 " is matched in texts and has %zu bytes; %u is the most",
                        i, text.n, MAX_SPECIAL);
        t->specials[t->n_specials++] = (struct special_text) { text, (int32_t)i };
        t->starts[0][(unsigned char)text.p[0]] = true;
        if (token_is_word(t, i)) t->starts[1][(unsigned char)text.p[0]] = true;
    }
    qsort(t->specials, t->n_specials, sizeof *t->specials, by_bytes);
    uint32_t at = 0;
    for (unsigned b = 0; b <= 256; b++) {
        while (at < t->n_specials && (unsigned char)t->specials[at].text.p[0] < b) at++;
        t->special_from[b] = at;
    }
    return BZ_OK;
}

static enum bz_status begin_all(struct tokenizer *t, const struct gguf *g, struct bz_err *err)
{
    enum bz_status st;
    t->file = g;
    if ((st = check_model(g, err))) return st;
    if ((st = find_tokens(t, g, err))) return st;
    return read_suppressed(t, g, err);
}

/* Their texts are there: what they are. */
static enum bz_status sort_tokens(struct tokenizer *t, struct bz_err *err)
{
    enum bz_status st;
    if ((st = read_types(t, t->file, err))) return st;
    if ((st = mark_by_text(t, err))) return st;
    if ((st = read_ends(t, t->file, err))) return st;
    if ((st = sort_specials(t, err))) return st;
    return tokenizer_begin_merges(t, t->file, err);
}

static enum bz_status read_some(struct tokenizer *t, uint32_t n, bool *more, struct bz_err *err)
{
    uint32_t before = t->n_copied;
    enum bz_status st = copy_tokens(t, n, err);
    n -= t->n_copied - before;
    *more = true;
    if (st || n == 0) return st;
    if (!t->reader) st = sort_tokens(t, err);
    return st ? st : tokenizer_read_merges(t, n, more, err);
}

/* An error of the file bears its name. */
static enum bz_status with_name(enum bz_status st, const struct gguf *g, struct bz_err *err)
{
    if (st != BZ_ERR_MEMORY && g->n_sources && g->sources[0].name)
        fail_prefix(err, st, "%s", g->sources[0].name);
    return st;
}

enum bz_status tokenizer_begin(struct tokenizer **out, const struct gguf *g, struct bz_err *err)
{
    struct tokenizer *t = mem_alloc(1, sizeof *t);
    if (!t) return fail_memory(err, sizeof *t);
    enum bz_status st = begin_all(t, g, err);
    if (st) {
        tokenizer_close(t);
        return with_name(st, g, err);
    }
    *out = t;
    return BZ_OK;
}

enum bz_status tokenizer_read_on(struct tokenizer *t, uint32_t n, bool *more, struct bz_err *err)
{
    *more = false;
    if (!t->file) return BZ_OK;
    enum bz_status st = read_some(t, n, more, err);
    if (st) return with_name(st, t->file, err);
    if (!*more) {
        tokenizer_end_merges(t);
        t->file = NULL;
    }
    return BZ_OK;
}

enum bz_status tokenizer_open(struct tokenizer **out, const struct gguf *g, struct bz_err *err)
{
    struct tokenizer *t;
    bool more;
    enum bz_status st = tokenizer_begin(&t, g, err);
    if (st) return st;
    st = tokenizer_read_on(t, UINT32_MAX, &more, err);
    if (st) tokenizer_close(t);
    else *out = t;
    return st;
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t) return;
    mem_free(t->text);
    mem_free(t->start);
    mem_free(t->kind);
    strmap_free(&t->by_text);
    mem_free(t->suppressed);
    mem_free(t->specials);
    mem_free(t->merges);
    mem_free(t->last_merge);
    mem_free(t->chars);
    tokenizer_end_merges(t);
    mem_free(t->extras);
    strmap_free(&t->by_extra);
    arena_free(&t->extra_text);
    mem_free(t);
}

static bool in_range(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->n_tok;
}

uint32_t tokenizer_size(const struct tokenizer *t)
{
    return t->n_tok;
}

int32_t tokenizer_special(const struct tokenizer *t, enum special which)
{
    return t->special[which];
}

bool tokenizer_is_end(const struct tokenizer *t, int32_t id)
{
    return in_range(t, id) && (t->kind[id] & KIND_END);
}

bool tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    return in_range(t, id) && (t->kind[id] & KIND_MARK);
}

enum token_type tokenizer_type(const struct tokenizer *t, int32_t id)
{
    return in_range(t, id) ? token_kind(t, (uint32_t)id) : TOKEN_UNUSED;
}

struct str tokenizer_text(const struct tokenizer *t, int32_t id)
{
    return in_range(t, id) ? token_text(t, (uint32_t)id) : (struct str) { "", 0 };
}

int32_t tokenizer_find(const struct tokenizer *t, struct str text)
{
    uint32_t id;
    return strmap_find(&t->by_text, text, &id) ? (int32_t)id : -1;
}

const int32_t *tokenizer_suppressed(const struct tokenizer *t, size_t *n)
{
    *n = t->n_suppressed;
    return t->suppressed;
}

bool ids_push(struct ids *v, int32_t id)
{
    if (v->n == v->cap) {
        size_t cap = v->cap ? v->cap * 2 : 64;
        int32_t *data = mem_grow(v->data, cap, sizeof *data);
        if (!data) return false;
        v->data = data;
        v->cap = cap;
    }
    v->data[v->n++] = id;
    return true;
}

void ids_free(struct ids *v)
{
    mem_free(v->data);
    *v = (struct ids) { 0 };
}
