/* cli_model.h - options and steps that every command with a model shares. */
#ifndef BEZEL_CLI_CLI_MODEL_H
#define BEZEL_CLI_CLI_MODEL_H

#include "bezel.h"
#include "cli/cli.h"

struct cli_model {
    const char *backend; /* "cpu" or "reference" */
    const char *cache;   /* "f32" or "f16" */
    const char *store;
    uint64_t n_threads, n_context, n_batch;
    struct cli_strs adapters;                                   /* PATH or PATH:SCALE */
    bool (*on_batch)(void *ctx, uint32_t done, uint32_t total); /* of the session, or NULL */
    bool (*go_on)(void *ctx);
    void *callback_ctx;
};

#define CLI_MODEL_DEFAULTS { .backend = "cpu", .cache = "f32" }

/* Of the model itself. */
#define CLI_ENGINE_OPTIONS(m)                                                                      \
    { "--threads", "N", "threads; default one per core", CLI_U64, &(m).n_threads, NULL },          \
        { "--adapter", "PATH[:S]",    "LoRA adapter with scale S; may be repeated",                \
          CLI_STRS,    &(m).adapters, NULL },                                                      \
        { "--backend", "NAME",       "cpu (default) or reference, the slow oracle",                \
          CLI_STR,     &(m).backend, NULL },                                                       \
    {                                                                                              \
        "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &(m).store, NULL \
    }

/* And of a conversation with it. */
#define CLI_MODEL_OPTIONS(m)                                                                       \
    { "--ctx", "N", "tokens of context; default 4096", CLI_U64, &(m).n_context, NULL },            \
        { "--batch", "N",          "prompt tokens computed together; default 256",                 \
          CLI_U64,   &(m).n_batch, NULL },                                                         \
        { "--cache", "TYPE",     "keys and values: f32 (default), or f16 in half the memory",      \
          CLI_STR,   &(m).cache, NULL },                                                           \
        CLI_ENGINE_OPTIONS(m)

/* Split "PATH" or "PATH:SCALE"; a colon without a number after it belongs to the path. *path is the
 * caller's to free, NULL on failure. */
enum bz_status cli_split_adapter(const char *spec, char **path, float *scale, struct bz_err *err);

struct cli_sampling {
    bool greedy;
    bool set_temp, set_top_k, set_top_p, set_min_p, set_seed, set_repeat, set_presence,
        set_frequency, set_window;
    double temp, top_p, min_p, repeat, presence, frequency;
    uint64_t top_k, seed, window;
    struct cli_strs bias; /* ID:ADD */
};

/* clang-format off */
#define CLI_SAMPLING_OPTIONS(s)                                                                    \
    { "--greedy", NULL, "always the most likely token", CLI_FLAG, &(s).greedy, NULL },             \
    { "--temp", "T", "temperature", CLI_F64, &(s).temp, &(s).set_temp },                           \
    { "--top-k", "K", "keep the K most likely tokens", CLI_U64, &(s).top_k, &(s).set_top_k },      \
    { "--top-p", "P", "keep the most likely tokens up to P", CLI_F64, &(s).top_p, &(s).set_top_p },\
    { "--min-p", "P", "drop tokens below P times the best", CLI_F64, &(s).min_p, &(s).set_min_p }, \
    { "--repeat-penalty", "R", "divide the logits of recent tokens", CLI_F64, &(s).repeat,         \
      &(s).set_repeat },                                                                           \
    { "--presence-penalty", "R", "subtract once from recent tokens", CLI_F64, &(s).presence,       \
      &(s).set_presence },                                                                         \
    { "--frequency-penalty", "R", "subtract for every occurrence", CLI_F64, &(s).frequency,        \
      &(s).set_frequency },                                                                        \
    { "--repeat-last-n", "N", "tokens that the penalties look at; default 64", CLI_U64,            \
      &(s).window, &(s).set_window },                                                              \
    { "--logit-bias", "ID:ADD", "add to a token's logit; may be repeated", CLI_STRS, &(s).bias,    \
      NULL },                                                                                      \
    { "--seed", "N", "same seed, same text", CLI_U64, &(s).seed, &(s).set_seed }
/* clang-format on */

enum { CLI_MAX_BIAS = 64 };

/* What answers keep to: at most one of these. */
struct cli_form {
    const char *schema, *grammar; /* paths */
    const char *regex;
    bool json_object;
    struct buf json; /* the same as a member of a constraint, once it was read */
};

/* clang-format off */
#define CLI_FORM_OPTIONS(f)                                                                        \
    { "--schema", "FILE", "JSON that keeps to the JSON Schema in FILE", CLI_STR, &(f).schema,      \
      NULL },                                                                                      \
    { "--json-object", NULL, "JSON: any object", CLI_FLAG, &(f).json_object, NULL },               \
    { "--regex", "R", "text that the pattern R matches as a whole", CLI_STR, &(f).regex, NULL },   \
    { "--grammar", "FILE", "text of the grammar in FILE, in GBNF", CLI_STR, &(f).grammar, NULL }
/* clang-format on */

/* Wrong usage says so, and returns CLI_USAGE; else CLI_OK. */
int cli_check_form(const struct cli_command *c, const struct cli_form *f);
enum bz_status cli_read_form(struct cli_form *f, struct bz_err *err);
/* *out: NULL where nothing was asked for. A thought may come first where the model `thinks`;
 * `in_thought`: the prompt ends inside one. */
enum bz_status cli_open_form(const struct cli_form *f, bz_engine *e, bool thinks, bool in_thought,
                             bz_constraint **out, struct bz_err *err);

/* Open the engine with its adapters, and (session != NULL) a session. */
enum bz_status cli_open(const struct cli_model *m, const char *model, bz_engine **engine,
                        bz_session **session, struct bz_err *err);

/* The model's defaults overridden by what was asked for. `bias` is room for CLI_MAX_BIAS. */
enum bz_status cli_sampling(const struct cli_sampling *s, const bz_engine *e,
                            struct bz_bias bias[CLI_MAX_BIAS], struct bz_sampling *out,
                            struct bz_err *err);

/* Seconds of a monotonic clock. */
double cli_now(void);

#endif
