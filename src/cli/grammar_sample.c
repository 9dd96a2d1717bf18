/* grammar_sample.c - `bezel grammar sample`: random texts of a grammar, by random walks through its
 * masks: what a model without any sense would write.
 */
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/grammar_cmd.h"
#include "engine.h"

/* After so many tokens a walk tries to come to an end; after so many more it is brought to one. */
enum { LONG = 60, TOO_LONG = 200 };

struct walk {
    const struct grammar_source *source;
    struct matcher *m;
    struct rng rng;
    int n_tokens;
};

static bool allows(const uint32_t *mask, int32_t id)
{
    return id >= 0 && mask[id / 32] >> id % 32 & 1;
}

/* A token of the mask that is no end: each is as likely. -1: there is none. */
static int32_t any_token(struct walk *w, const uint32_t *mask)
{
    const struct tokenizer *t = w->source->e->tokenizer;
    uint32_t words = (tokenizer_size(t) + 31) / 32, n = 0;
    for (uint32_t i = 0; i < words; i++) n += (uint32_t)__builtin_popcount(mask[i]);
    for (int turn = 0; n && turn < 20; turn++) {
        uint32_t k = rng_below(&w->rng, n), i = 0, left;
        while (k >= (uint32_t)__builtin_popcount(mask[i]))
            k -= (uint32_t)__builtin_popcount(mask[i++]);
        for (left = mask[i]; k > 0; k--) left &= left - 1;
        int32_t id = (int32_t)(32 * i) + __builtin_ctz(left);
        if (!tokenizer_is_end(t, id)) return id;
    }
    return -1;
}

/* A token that closes something, if there is one. */
static int32_t closing_token(const struct walk *w, const uint32_t *mask)
{
    static const char *const closers[] = { "\"", "}", "]" };
    for (size_t i = 0; i < sizeof closers / sizeof *closers; i++) {
        int32_t id = tokenizer_find(w->source->e->tokenizer, str_of(closers[i]));
        if (allows(mask, id)) return id;
    }
    return -1;
}

/* One token further; *over: the text is whole. */
static enum bz_status step(struct walk *w, bool *over, struct bz_err *err)
{
    bool hurry = rng_below(&w->rng, 8) < (w->n_tokens < LONG ? 2u : 7u), accepted = false;
    const uint32_t *mask = matcher_mask(w->m);
    if (!mask) return matcher_status(w->m, err);
    int32_t id = any_token(w, mask), closing = closing_token(w, mask);
    *over = matcher_may_end(w->m) && (hurry || id < 0);
    if (*over) return BZ_OK;
    if (hurry && closing >= 0) id = closing;
    if (id < 0) return fail(err, BZ_ERR_UNSUPPORTED, "no token may follow");
    enum bz_status st = matcher_advance(w->m, id, &accepted, err);
    if (st == BZ_OK && !accepted)
        st = fail(err, BZ_ERR_UNSUPPORTED, "the mask allows token %d, and the grammar does not",
                  (int)id);
    w->n_tokens++;
    return st;
}

static enum bz_status sample(const struct grammar_source *source, struct grammar *g, uint64_t seed,
                             bool json, struct bz_err *err)
{
    struct walk w = { .source = source, .rng = { .state = rng_mix(seed) } };
    struct buf text = { 0 }, line = { 0 };
    struct bz_err why;
    bool over = false;
    enum bz_status st = matcher_open(&w.m, g, source->v, &why);
    while (st == BZ_OK && !over && w.n_tokens < TOO_LONG) st = step(&w, &over, &why);
    if (w.m) buf_put_str(&text, matcher_text(w.m));
    if (st == BZ_OK && !over) st = matcher_finish(w.m, &text, &why);
    if (st) {
        size_t shown = text.n < 120 ? text.n : 120;
        fail(err, st, "seed %llu: %s, after \"%.*s\"", (unsigned long long)seed, why.text,
             (int)shown, text.n ? text.data + text.n - shown : "");
    } else {
        if (json) json_put_string(&line, buf_str(&text));
        printf("%.*s\n", STR_ARG(json ? buf_str(&line) : buf_str(&text)));
    }
    buf_free(&line);
    buf_free(&text);
    matcher_close(w.m);
    return st;
}

int grammar_sample(int argc, char **argv)
{
    struct grammar_source a = { 0 };
    uint64_t seed = 1, n = 1;
    bool json = false;
    const struct cli_option options[] = {
        GRAMMAR_OPTIONS(&a),
        { "--indent", NULL, "JSON with line breaks", CLI_FLAG, &a.options.indent, NULL },
        { "--seed", "N", "of the first text; each has the next one", CLI_U64, &seed, NULL },
        { "--n", "N", "how many", CLI_U64, &n, NULL },
        { "--json", NULL, "each as a JSON string: texts may have line breaks", CLI_FLAG, &json,
          NULL },
    };
    const struct cli_command c = { "grammar sample",
                                   "--schema FILE | --grammar FILE | --regex R --model M",
                                   "Random texts of a grammar, by walks through its masks.",
                                   options,
                                   sizeof options / sizeof *options,
                                   0,
                                   0 };
    int code;
    const char *unused;
    struct bz_err err;
    struct grammar *g = NULL;
    if (cli_parse(&c, argc, argv, &unused, &code) < 0) return code;
    if (!grammar_source_is_one(&a)) return cli_misuse(&c, GRAMMAR_ONE_OF);
    if (!a.model) return cli_misuse(&c, "--model is needed");
    enum bz_status st = grammar_source_open(&a, &g, &err);
    for (uint64_t i = 0; i < n && st == BZ_OK; i++) st = sample(&a, g, seed + i, json, &err);
    grammar_close(g);
    grammar_source_close(&a);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
