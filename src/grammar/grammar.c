/* grammar.c - compiling: from a schema, a pattern or a GBNF text to the first configuration. */
#include "grammar/gbnf.h"
#include "grammar/mask.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

enum bz_status grammar_begin(struct grammar **out, const struct grammar_options *options,
                             struct bz_err *err)
{
    struct grammar *g = mem_alloc(1, sizeof *g);
    if (!g) return fail_memory(err, sizeof *g);
    if (!store_open(&g->s)) {
        mem_free(g);
        return fail_memory(err, sizeof *g);
    }
    if (options) g->options = *options;
    if (g->options.any_form) g->s.max_search = SEARCH_CHECKED;
    *out = g;
    return BZ_OK;
}

void grammar_close(struct grammar *g)
{
    if (!g) return;
    mask_cache_close(g->masks);
    lift_forget(&g->s);
    schema_close(g);
    store_close(&g->s);
    mem_free(g);
}

enum bz_status grammar_finish(struct grammar **out, struct grammar *g, enum bz_status st,
                              struct bz_err *err)
{
    if (st == BZ_OK && g->s.status) {
        st = g->s.status;
        if (err) *err = g->s.err;
    }
    if (st) grammar_close(g);
    else *out = g;
    return st;
}

enum bz_status grammar_of_schema(struct grammar **out, struct str json,
                                 const struct grammar_options *options, struct bz_err *err)
{
    struct grammar *g = NULL;
    enum bz_status st = grammar_begin(&g, options, err);
    if (st) return st;
    st = schema_open(g, json, err);
    if (st == BZ_OK) {
        node f = schema_root(g);
        schema_check(g, f);
        bool space = g->options.any_form;
        node end = config_one(g, thread_make(H_END, space, 0, 0, 0));
        g->start = config_one(g, thread_make(H_VALUE, 0, f, 0, end));
        if (!g->options.any_form && f_empty(g, f))
            store_fail(&g->s, BZ_ERR_UNSUPPORTED, "no JSON value satisfies the schema");
    }
    return grammar_finish(out, g, st, err);
}

/* An expression is the whole text. */
static void start_with(struct grammar *g, node re)
{
    node end = config_one(g, thread_make(H_END, 0, 0, 0, 0));
    if (!g->s.status && !re_live(&g->s, re))
        store_fail(&g->s, BZ_ERR_UNSUPPORTED, "no text satisfies the grammar");
    g->start = config_one(g, thread_make(H_RAW, lift_start(&g->s, LIFT_RAW, re), 0, 0, end));
}

enum bz_status grammar_of_regex(struct grammar **out, struct str pattern, struct bz_err *err)
{
    struct grammar *g = NULL;
    enum bz_status st = grammar_begin(&g, NULL, err);
    if (st) return st;
    start_with(g, regex_whole(&g->s, pattern));
    return grammar_finish(out, g, BZ_OK, err);
}

enum bz_status grammar_of_gbnf(struct grammar **out, struct str text, struct bz_err *err)
{
    struct grammar *g = NULL;
    enum bz_status st = grammar_begin(&g, NULL, err);
    if (st) return st;
    start_with(g, gbnf_read(&g->s, text));
    return grammar_finish(out, g, BZ_OK, err);
}
