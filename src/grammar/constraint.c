/* constraint.c - the phases of a constrained answer.
 *
 *             <|channel>           <channel|>           a token of the content
 *      BEGIN ------------> THOUGHT ----------> START ---------------------------> CONTENT
 *        |                                     ^   |                                 |
 *        +-------------------------------------+   +---------> CALLS <---------------+
 *                    no thought                    <|tool_call>      <|tool_call>
 *
 * Free content may be followed by calls, content of a grammar may not. Where a call is required
 * there is no content, and CALLS takes the place of START.
 */
#include "grammar/constraint.h"

#include "grammar/calls.h"
#include "grammar/vocab.h"

struct constraint {
    struct vocab *v;
    struct grammar *content, *calls; /* NULL: free text; no calls */
    bool required;                   /* a call, and no content */
    bool thinking, in_thought;
    int32_t channel, channel_end, call;
    uint32_t *thought; /* all text, and the end of the thought */
    uint32_t *free;    /* all text, the end of the answer, and a call where one may come */
    uint32_t *mask;    /* one that another tag was added to */
};

enum phase { BEGIN, THOUGHT, START, CONTENT, CALLS };

struct guide {
    struct constraint *c;
    struct matcher *content, *calls;
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
    static const char *const known[] = { "schema", "json",     "regex",    "gbnf",      "tools",
                                         "call",   "one_call", "thinking", "in_thought" };
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

/* *free: nothing is said of it. */
static enum bz_status open_content(struct constraint *c, const struct json *how, bool *free,
                                   struct bz_err *err)
{
    const struct json *schema = json_get(how, "schema");
    struct str regex = { 0 }, gbnf = { 0 };
    bool json = false;
    enum bz_status st = read_flag(how, "json", &json, err);
    if (st == BZ_OK) st = read_text(how, "regex", &regex, err);
    if (st == BZ_OK) st = read_text(how, "gbnf", &gbnf, err);
    if (st) return st;
    int n = (schema != NULL) + json + (regex.p != NULL) + (gbnf.p != NULL);
    *free = n == 0;
    if (n > 1)
        return fail(err, BZ_ERR_ARGUMENT,
                    "a constraint has one of \"schema\", \"json\", \"regex\" and \"gbnf\"");
    if (regex.p) return grammar_of_regex(&c->content, regex, err);
    if (gbnf.p) return grammar_of_gbnf(&c->content, gbnf, err);
    return *free ? BZ_OK : open_schema(c, schema, err);
}

static enum bz_status read_tool(const struct json *j, struct tool *tool, struct bz_err *err)
{
    enum bz_status st = read_flag(j, "strict", &tool->strict, err);
    if (st == BZ_OK) st = read_text(j, "name", &tool->name, err);
    if (st == BZ_OK && !tool->name.p)
        st = fail(err, BZ_ERR_ARGUMENT, "a tool of a constraint has no \"name\"");
    const struct json *parameters = json_get(j, "parameters");
    if (parameters && parameters->type != JSON_NULL) tool->parameters = parameters;
    return st;
}

/* Calls of these tools. */
static enum bz_status open_tools(struct constraint *c, const struct json *list, bool one,
                                 struct bz_err *err)
{
    enum bz_status st = BZ_OK;
    struct tool *tools = mem_alloc(list->n, sizeof *tools);
    size_t n = 0;
    if (!tools) return fail_memory(err, list->n * sizeof *tools);
    for (const struct json *j = list->child; j && st == BZ_OK; j = j->next)
        st = read_tool(j, &tools[n++], err);
    if (st == BZ_OK) st = grammar_of_calls(&c->calls, tools, n, !one, err);
    mem_free(tools);
    return st;
}

static enum bz_status open_calls(struct constraint *c, const struct json *how, struct bz_err *err)
{
    const struct json *tools = json_get(how, "tools");
    struct str call = { 0 };
    bool one = false;
    enum bz_status st = read_flag(how, "one_call", &one, err);
    if (st == BZ_OK) st = read_text(how, "call", &call, err);
    if (st) return st;
    if (tools && tools->type != JSON_ARRAY)
        return fail(err, BZ_ERR_ARGUMENT, "\"tools\" of a constraint is a list");
    c->required = call.p && str_is(call, "required");
    bool none = call.p && str_is(call, "none");
    if (call.p && !c->required && !none && !str_is(call, "auto"))
        return fail(err, BZ_ERR_ARGUMENT,
                    "\"call\" of a constraint is \"auto\", \"required\" or \"none\"");
    bool any = tools && tools->n && !none;
    if (c->required && !any)
        return fail(err, BZ_ERR_ARGUMENT, "a call is required, and there is no tool");
    if (!any) return BZ_OK;
    c->call = tokenizer_special(c->v->t, SPECIAL_CALL);
    if (c->call < 0 || tokenizer_special(c->v->t, SPECIAL_CALL_END) < 0 ||
        tokenizer_special(c->v->t, SPECIAL_QUOTE) < 0)
        return fail(err, BZ_ERR_UNSUPPORTED, "the vocabulary has no tokens for calls of tools");
    return open_tools(c, tools, one, err);
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
    return st;
}

static enum bz_status open_masks(struct constraint *c, struct bz_err *err)
{
    uint32_t n = c->v->n_words;
    c->thought = mem_alloc(n, sizeof *c->thought);
    c->free = mem_alloc(n, sizeof *c->free);
    c->mask = mem_alloc(n, sizeof *c->mask);
    if (!c->thought || !c->free || !c->mask) return fail_memory(err, (uint64_t)n * 12);
    for (uint32_t i = 0; i < c->v->n_tokens; i++)
        if (vocab_is_text(c->v->t, i)) allow(c->thought, (int32_t)i);
    memcpy(c->free, c->thought, n * sizeof *c->free);
    for (uint32_t i = 0; i < c->v->n_ends; i++) allow(c->free, (int32_t)c->v->ends[i]);
    if (c->channel_end >= 0) allow(c->thought, c->channel_end);
    if (c->calls) allow(c->free, c->call);
    return BZ_OK;
}

enum bz_status constraint_open(struct constraint **out, const struct json *how, struct vocab *v,
                               struct bz_err *err)
{
    struct constraint *c = mem_alloc(1, sizeof *c);
    bool free = false;
    if (!c) return fail_memory(err, sizeof *c);
    c->v = v;
    enum bz_status st = check_keys(how, err);
    if (st == BZ_OK) st = open_content(c, how, &free, err);
    if (st == BZ_OK && free && !json_get(how, "tools"))
        st = fail(err, BZ_ERR_ARGUMENT, "a constraint says nothing of content or tools");
    if (st == BZ_OK) st = open_calls(c, how, err);
    if (st == BZ_OK) st = open_thought(c, how, err);
    if (st == BZ_OK) st = open_masks(c, err);
    if (st) constraint_close(c);
    else *out = c;
    return st;
}

void constraint_close(struct constraint *c)
{
    if (!c) return;
    grammar_close(c->content);
    grammar_close(c->calls);
    mem_free(c->thought);
    mem_free(c->free);
    mem_free(c->mask);
    mem_free(c);
}

/* ---- one answer ---- */

static enum phase behind_thought(const struct constraint *c)
{
    return c->required ? CALLS : START;
}

enum bz_status guide_open(struct guide **out, struct constraint *c, struct bz_err *err)
{
    struct guide *g = mem_alloc(1, sizeof *g);
    enum bz_status st = BZ_OK;
    if (!g) return fail_memory(err, sizeof *g);
    g->c = c;
    g->phase = c->in_thought ? THOUGHT : c->thinking ? BEGIN : behind_thought(c);
    if (c->content) st = matcher_open(&g->content, c->content, c->v, err);
    if (st == BZ_OK && c->calls) st = matcher_open(&g->calls, c->calls, c->v, err);
    if (st) guide_close(g);
    else *out = g;
    return st;
}

void guide_close(struct guide *g)
{
    if (!g) return;
    matcher_close(g->content);
    matcher_close(g->calls);
    ids_free(&g->forced);
    mem_free(g);
}

/* May the answer go on by its first call, beside content? */
static bool may_call(const struct guide *g)
{
    const struct constraint *c = g->c;
    if (!c->calls || c->required) return false;
    return g->phase == BEGIN || g->phase == START || (g->phase == CONTENT && !c->content);
}

/* The text that goes on now; NULL: it is free. */
static struct matcher *text_of(const struct guide *g)
{
    return g->phase == CALLS || g->c->required ? g->calls : g->content;
}

enum bz_status guide_mask(struct guide *g, const uint32_t **mask, struct bz_err *err)
{
    struct constraint *c = g->c;
    *mask = c->thought;
    if (g->phase == THOUGHT) return BZ_OK;
    struct matcher *m = text_of(g);
    *mask = m ? matcher_mask(m) : c->free;
    if (!*mask) return matcher_status(m, err);
    bool call = may_call(g) && *mask != c->free; /* which has it already */
    if (!call && g->phase != BEGIN) return BZ_OK;
    memcpy(c->mask, *mask, c->v->n_words * sizeof *c->mask);
    if (call) allow(c->mask, c->call);
    if (g->phase == BEGIN) allow(c->mask, c->channel);
    *mask = c->mask;
    return BZ_OK;
}

static enum bz_status forbidden(const struct guide *g, int32_t id, struct bz_err *err)
{
    return fail(err, BZ_ERR_ARGUMENT, "the answer may not go on with token %d, \"%.*s\"", (int)id,
                STR_ARG(tokenizer_text(g->c->v->t, id)));
}

/* Content, or calls once they have begun. */
static enum bz_status advance_text(struct guide *g, int32_t id, enum phase next, struct bz_err *err)
{
    const struct tokenizer *t = g->c->v->t;
    struct matcher *m = next == CALLS ? g->calls : g->content;
    bool accepted = tokenizer_is_end(t, id) || vocab_is_text(t, (uint32_t)id);
    enum bz_status st = m ? matcher_advance(m, id, &accepted, err) : BZ_OK;
    if (st) return st;
    if (!accepted) return forbidden(g, id, err);
    if (!tokenizer_is_end(t, id)) g->phase = next;
    return BZ_OK;
}

enum bz_status guide_advance(struct guide *g, int32_t id, struct bz_err *err)
{
    const struct constraint *c = g->c;
    if (id < 0 || (uint32_t)id >= c->v->n_tokens) return forbidden(g, id, err);
    if (g->phase == BEGIN && id == c->channel) {
        g->phase = THOUGHT;
    } else if (g->phase == THOUGHT) {
        if (id == c->channel_end) g->phase = behind_thought(c);
        else if (!vocab_is_text(c->v->t, (uint32_t)id)) return forbidden(g, id, err);
    } else {
        bool call = g->phase == CALLS || c->required || (may_call(g) && id == c->call);
        return advance_text(g, id, call ? CALLS : CONTENT, err);
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

/* Bytes of tags are tags. */
static enum bz_status encode(struct guide *g, struct str text, struct bz_err *err)
{
    struct marked m = { 0 };
    for (size_t i = 0; i < text.n; i++) {
        unsigned byte = (unsigned char)text.p[i];
        if (byte >= BYTE_FIRST) marked_put(&m, tag_special(byte));
        else buf_putc(&m.text, (char)byte);
    }
    enum bz_status st = m.text.failed
                            ? fail_memory(err, text.n)
                            : tokenizer_encode_marked(g->c->v->t, &m, true, &g->forced, err);
    marked_free(&m);
    return st;
}

/* The last token of a text may not be the model's, which could join it with what follows. So it
 * stays away, unless nothing follows or it is a tag. */
static enum bz_status force(struct guide *g, struct matcher *m, struct str text, struct bz_err *err)
{
    bool over = (unsigned char)text.p[text.n - 1] >= BYTE_FIRST;
    enum bz_status st = encode(g, text, err);
    if (st == BZ_OK && !over) st = ends_with(m, text, &over, err);
    if (st) return st;
    size_t n = count_exact(g, text);
    g->forced.n = n < g->forced.n || over || n == 0 ? n : n - 1;
    return BZ_OK;
}

enum bz_status guide_forced(struct guide *g, const int32_t **ids, size_t *n, struct bz_err *err)
{
    struct buf text = { 0 };
    struct matcher *m = text_of(g);
    bool choice = g->phase == BEGIN || g->phase == THOUGHT || may_call(g);
    enum bz_status st = BZ_OK;
    g->forced.n = 0;
    if (m && !choice) st = matcher_forced(m, &text, err);
    if (st == BZ_OK && text.n) st = force(g, m, buf_str(&text), err);
    buf_free(&text);
    *ids = g->forced.data;
    *n = st ? 0 : g->forced.n;
    return st;
}
