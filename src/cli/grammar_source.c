/* grammar_source.c - the grammar and the vocabulary that a command of `bezel grammar` is given. */
#include "cli/grammar_cmd.h"
#include "cli/shipped.h"
#include "engine.h"

bool grammar_source_is_one(const struct grammar_source *a)
{
    return !a->schema + !a->grammar + !a->regex == 2;
}

static enum bz_status compile(const struct grammar_source *a, struct grammar **g,
                              struct bz_err *err)
{
    struct buf text = { 0 };
    const char *path = a->schema ? a->schema : a->grammar;
    enum bz_status st = path ? cli_read_file(path, &text, err) : BZ_OK;
    if (st == BZ_OK && a->schema) st = grammar_of_schema(g, buf_str(&text), &a->options, err);
    else if (st == BZ_OK && a->grammar) st = grammar_of_gbnf(g, buf_str(&text), err);
    else if (st == BZ_OK) st = grammar_of_regex(g, str_of(a->regex), err);
    buf_free(&text);
    return st;
}

enum bz_status grammar_source_vocab(struct grammar_source *a, struct bz_err *err)
{
    char path[PATH_MAX];
    const struct bz_engine_options o = { .store = a->store, .vocab_only = true };
    enum bz_status st = bz_engine_open(&a->e, shipped_or(a->model, a->store, path), &o, err);
    return st ? st : vocab_open(&a->v, a->e->tokenizer, err);
}

enum bz_status grammar_source_open(struct grammar_source *a, struct grammar **g, struct bz_err *err)
{
    enum bz_status st = compile(a, g, err);
    return st || !a->model ? st : grammar_source_vocab(a, err);
}

void grammar_source_close(struct grammar_source *a)
{
    vocab_close(a->v);
    bz_engine_close(a->e);
    a->v = NULL;
    a->e = NULL;
}
