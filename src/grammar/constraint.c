/* constraint.c - the phases of a constrained answer.
 *
 *               <|channel>             <channel|>
 *     BEGIN ------------------> THOUGHT ----------> CONTENT
 *       |                                              ^
 *       +----------------------------------------------+
 *                the content's first token
 *
 * An answer that cannot begin with a thought begins with CONTENT; one whose prompt ends inside a
 * thought begins there.
 */
#include "grammar/constraint.h"

#include "grammar/vocab.h"

struct constraint {
    struct vocab *v;
    struct grammar *content;
    bool thinking, in_thought;
    int32_t channel, channel_end;
    uint32_t *thought; /* all text, and the end of the thought */
    uint32_t *begin;   /* the content's first tokens, and the beginning of a thought */
};

enum phase { BEGIN, THOUGHT, CONTENT };

struct guide {
    struct constraint *c;
    struct matcher *content;
    enum phase phase;
    struct ids forced;
};

static void allow(uint32_t *mask, int32_t token)
{
    mask[token / 32] |= 1u << token % 32;
}

/* ---- what a request asks for ---- */

/* Each key once, so that a key that is misspelt is told. */
static enum bz_status check_keys(const struct json *how, struct bz_err *err)
{
    static const char *const known[] = {
        "schema", "json", "regex", "gbnf", "thinking", "in_thought"
    };
    enum { N_KNOWN = sizeof known / sizeof *known };
    if (how->type != JSON_OBJECT)
        return fail(err, BZ_ERR_ARGUMENT, "a constraint is a JSON object");
    for (const struct json *c = how->child; c; c = c->next) {
        size_t i = 0;
        while (i < N_KNOWN && !str_is(c->key, known[i])) i++;
        if (i == N_KNOWN)
            return fail(err, BZ_ERR_ARGUMENT, "a constraint has no \"%.*s\"", STR_ARG(c->key));
    }
    return BZ_OK;
}

static enum bz_status read_flag(const struct json *how, const char *key, bool *out,
                                struct bz_err *err)
{
    const struct json *j = json_get(how, key);
    if (j && j->type != JSON_BOOL)
        return fail(err, BZ_ERR_ARGUMENT, "\"%s\" of a constraint is true or false", key);
    *out = j && j->boolean;
    return BZ_OK;
}

static enum bz_status read_text(const struct json *how, const char *key, struct str *out,
                                struct bz_err *err)
{
    const struct json *j = json_get(how, key);
    *out = (struct str) { NULL, 0 };
    if (j && j->type != JSON_STRING)
        return fail(err, BZ_ERR_ARGUMENT, "\"%s\" of a constraint is a text", key);
    if (j) *out = j->text;
    return BZ_OK;
}

static enum bz_status open_schema(struct constraint *c, const struct json *schema,
                                  struct bz_err *err)
{
    struct buf text = { 0 };
    if (schema) json_put(&text, schema);
    else buf_puts(&text, "{\"type\":\"object\"}");
    enum bz_status st = text.failed ? fail_memory(err, text.n)
                                    : grammar_of_schema(&c->content, buf_str(&text), NULL, err);
    buf_free(&text);
    return st;
}

static enum bz_status open_content(struct constraint *c, const struct json *how, struct bz_err *err)
{
    const struct json *schema = json_get(how, "schema");
    struct str regex = { 0 }, gbnf = { 0 };
    bool json = false;
    enum bz_status st = read_flag(how, "json", &json, err);
    if (st == BZ_OK) st = read_text(how, "regex", &regex, err);
    if (st == BZ_OK) st = read_text(how, "gbnf", &gbnf, err);
    if (st) return st;
    if ((schema != NULL) + json + (regex.p != NULL) + (gbnf.p != NULL) != 1)
        return fail(err, BZ_ERR_ARGUMENT,
                    "a constraint has one of \"schema\", \"json\", \"regex\" and \"gbnf\"");
    if (regex.p) return grammar_of_regex(&c->content, regex, err);
    if (gbnf.p) return grammar_of_gbnf(&c->content, gbnf, err);
    return open_schema(c, schema, err);
}

/* A vocabulary without the tokens of a thought has none. */
static enum bz_status open_thought(struct constraint *c, const struct json *how, struct bz_err *err)
{
    const struct tokenizer *t = c->v->t;
    enum bz_status st = read_flag(how, "thinking", &c->thinking, err);
    if (st == BZ_OK) st = read_flag(how, "in_thought", &c->in_thought, err);
    c->channel = tokenizer_special(t, SPECIAL_CHANNEL);
    c->channel_end = tokenizer_special(t, SPECIAL_CHANNEL_END);
    c->thinking &= c->channel >= 0 && c->channel_end >= 0;
    c->in_thought &= c->channel_end >= 0;
    if (st || (!c->thinking && !c->in_thought)) return st;
    c->thought = mem_alloc(c->v->n_words, sizeof *c->thought);
    c->begin = mem_alloc(c->v->n_words, sizeof *c->begin);
    if (!c->thought || !c->begin) return fail_memory(err, (uint64_t)c->v->n_words * 8);
    for (uint32_t i = 0; i < c->v->n_tokens; i++)
        if (vocab_is_text(t, i)) allow(c->thought, (int32_t)i);
    allow(c->thought, c->channel_end);
    return BZ_OK;
}

enum bz_status constraint_open(struct constraint **out, const struct json *how, struct vocab *v,
                               struct bz_err *err)
{
    struct constraint *c = mem_alloc(1, sizeof *c);
    if (!c) return fail_memory(err, sizeof *c);
    c->v = v;
    enum bz_status st = check_keys(how, err);
    if (st == BZ_OK) st = open_content(c, how, err);
    if (st == BZ_OK) st = open_thought(c, how, err);
    if (st) constraint_close(c);
    else *out = c;
    return st;
}

void constraint_close(struct constraint *c)
{
    if (!c) return;
    grammar_close(c->content);
    mem_free(c->thought);
    mem_free(c->begin);
    mem_free(c);
}

/* ---- one answer ---- */

enum bz_status guide_open(struct guide **out, struct constraint *c, struct bz_err *err)
{
    struct guide *g = mem_alloc(1, sizeof *g);
    if (!g) return fail_memory(err, sizeof *g);
    g->c = c;
    g->phase = c->in_thought ? THOUGHT : c->thinking ? BEGIN : CONTENT;
    enum bz_status st = matcher_open(&g->content, c->content, c->v, err);
    if (st) guide_close(g);
    else *out = g;
    return st;
}

void guide_close(struct guide *g)
{
    if (!g) return;
    matcher_close(g->content);
    ids_free(&g->forced);
    mem_free(g);
}

enum bz_status guide_mask(struct guide *g, const uint32_t **mask, struct bz_err *err)
{
    struct constraint *c = g->c;
    *mask = c->thought;
    if (g->phase == THOUGHT) return BZ_OK;
    *mask = matcher_mask(g->content);
    if (!*mask) return matcher_status(g->content, err);
    if (g->phase == CONTENT) return BZ_OK;
    memcpy(c->begin, *mask, c->v->n_words * sizeof *c->begin);
    allow(c->begin, c->channel);
    *mask = c->begin;
    return BZ_OK;
}

static enum bz_status forbidden(const struct guide *g, int32_t id, struct bz_err *err)
{
    return fail(err, BZ_ERR_ARGUMENT, "the answer may not go on with token %d, \"%.*s\"", (int)id,
                STR_ARG(tokenizer_text(g->c->v->t, id)));
}

enum bz_status guide_advance(struct guide *g, int32_t id, struct bz_err *err)
{
    const struct constraint *c = g->c;
    bool accepted = false;
    if (id < 0 || (uint32_t)id >= c->v->n_tokens) return forbidden(g, id, err);
    if (g->phase == BEGIN && id == c->channel) {
        g->phase = THOUGHT;
    } else if (g->phase == THOUGHT) {
        if (id == c->channel_end) g->phase = CONTENT;
        else if (!vocab_is_text(c->v->t, (uint32_t)id)) return forbidden(g, id, err);
    } else {
        enum bz_status st = matcher_advance(g->content, id, &accepted, err);
        if (st) return st;
        if (!accepted) return forbidden(g, id, err);
        g->phase = CONTENT;
    }
    return BZ_OK;
}

/* ---- what must come ---- */

/* The first tokens of v that spell the text, or its beginning. The tokenizer may have no token for
 * a character, or spell another one. */
static size_t count_exact(const struct guide *g, struct str text)
{
    char bytes[MAX_TOKEN_BYTES];
    size_t at = 0, i = 0, n;
    for (; i < g->forced.n; i++) {
        uint32_t id = (uint32_t)g->forced.data[i];
        if (tokenizer_text(g->c->v->t, (int32_t)id).n > sizeof bytes) break;
        if (!vocab_bytes(g->c->v->t, id, bytes, &n) || n > text.n - at) break;
        if (memcmp(text.p + at, bytes, n) != 0) break;
        at += n;
    }
    return i;
}

/* Is the text over once it has gone on by these bytes, which must come? */
static enum bz_status ends_with(struct matcher *m, struct str text, bool *over, struct bz_err *err)
{
    size_t n;
    enum bz_status st = matcher_read(m, text, &n, err);
    if (st) return st;
    *over = n == text.n && matcher_is_over(m);
    matcher_rollback(m, 1);
    return matcher_status(m, err);
}

/* The last token may not be the model's: it could join it with what follows. So it stays away
 * unless nothing follows. */
static enum bz_status force(struct guide *g, struct str text, struct bz_err *err)
{
    const struct tokenize_options plain = { .no_bos = true, .plain = true };
    bool over = false;
    enum bz_status st = tokenizer_encode(g->c->v->t, text, plain, &g->forced, err);
    if (st == BZ_OK) st = ends_with(g->content, text, &over, err);
    if (st) return st;
    size_t n = count_exact(g, text);
    g->forced.n = n < g->forced.n || over || n == 0 ? n : n - 1;
    return BZ_OK;
}

enum bz_status guide_forced(struct guide *g, const int32_t **ids, size_t *n, struct bz_err *err)
{
    struct buf text = { 0 };
    enum bz_status st = BZ_OK;
    g->forced.n = 0;
    if (g->phase == CONTENT) st = matcher_forced(g->content, &text, err);
    if (st == BZ_OK && text.n) st = force(g, buf_str(&text), err);
    buf_free(&text);
    *ids = g->forced.data;
    *n = st ? 0 : g->forced.n;
    return st;
}
