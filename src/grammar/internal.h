/* internal.h - a compiled grammar as the files of this module see it. Private to src/grammar. */
#ifndef BEZEL_GRAMMAR_INTERNAL_H
#define BEZEL_GRAMMAR_INTERNAL_H

#include "base/json.h"
#include "grammar/grammar.h"
#include "grammar/re.h"

/* Alternatives at one place, and nesting, that are still followed. */
enum {
    MAX_ALTERNATIVES = 600,
    MAX_LEVELS = 128,
    MAX_HEIGHT = 32, /* levels that a value may need at least, where text is written */
    MAX_THREADS = 2000,
    MAX_VISITS = 400000
};

enum draft_number { DRAFT_4 = 4, DRAFT_6 = 6, DRAFT_7 = 7, DRAFT_2019 = 2019, DRAFT_2020 = 2020 };

/* A document or a part of one that has an address ($id). */
struct resource {
    const struct json *json;
    struct str uri;
    enum draft_number draft;
    uint32_t document; /* that it is in: its resource */
};

struct schema_set {
    struct arena arena;         /* the parsed documents */
    struct resource *resources; /* of each document the whole of it is the first */
    uint32_t document;          /* that was opened last: its resource */
    uint32_t n_resources, resources_cap;
};

struct grammar {
    struct store s;
    struct grammar_options options;
    struct schema_set set;
    node start;        /* CONFIG */
    bool one_spelling; /* equal values are written alike (unique.h) */
    bool calls;        /* texts are calls of tools, in Gemma's notation (calls.h) */
    node call;         /* CONFIG behind the tag that begins one */
    struct mask_cache *masks;
    const struct vocab *masks_of; /* the vocabulary that they are for */
    /* Of f_value and f_fits: how deep they are inside one another, and what they came upon. */
    uint32_t n_open, n_looking, n_looks;
    uint32_t n_searching;       /* states of arrays that are looked at, inside one another */
    bool hit_open, hit_looking; /* a formula that is being opened, or looked at */
    bool limited;               /* more levels could change the answer */
    bool placed;                /* the failure says where in the schema */
    uint32_t n_visits;          /* alternatives combined so far */
};

/* A grammar without a text yet; then it is handed over if nothing failed, else closed. */
enum bz_status grammar_begin(struct grammar **out, const struct grammar_options *options,
                             struct bz_err *err);
enum bz_status grammar_finish(struct grammar **out, struct grammar *g, enum bz_status st,
                              struct bz_err *err);

/* One more pair of alternatives was combined: too many is a failure. */
void visit(struct grammar *g);

#endif
