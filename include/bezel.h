/* bezel.h - Gemma 4 on this machine: the whole public interface of the C library.
 *
 *     struct bz_err err;
 *     bz_engine *engine;
 *     bz_session *session;
 *     if (bz_engine_open(&engine, "gemma4:e2b", NULL, &err) ||
 *         bz_session_open(&session, engine, NULL, &err) ||
 *         bz_session_feed_text(session, "The capital of France is", &err))
 *         return puts(err.text), 1;
 *     struct bz_generate_options options = bz_generate_defaults(engine);
 *     options.on_text = print_text;
 *     bz_generate(session, &options, NULL, &err);
 *     bz_session_close(session);
 *     bz_engine_close(engine);
 *
 * An engine is a model: its file, vocabulary and adapters. A session is one conversation with it:
 * the tokens so far and their keys and values. An engine serves several sessions, but one thread at
 * a time. Functions that can fail return a status and write one sentence for the person; they never
 * print and never exit. Options given as NULL, or zeroed, are the defaults.
 */
#ifndef BEZEL_H
#define BEZEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BZ_VERSION "0.1.0"

enum bz_status {
    BZ_OK = 0,
    BZ_ERR_ARGUMENT,    /* the caller asked for something that makes no sense */
    BZ_ERR_MEMORY,      /* an allocation failed */
    BZ_ERR_IO,          /* the system could not read or write */
    BZ_ERR_FORMAT,      /* foreign bytes are not what they claim to be */
    BZ_ERR_UNSUPPORTED, /* valid, but this build does not do it */
    BZ_ERR_NOT_FOUND,   /* no such file, model, tensor or name */
    BZ_ERR_LIMIT,       /* a capacity is used up (context full) */
    BZ_ERR_CANCELLED    /* the caller's own wish */
};

/* One sentence that names the thing and the fact. */
struct bz_err {
    char text[512];
};

/* ---- engine: a model ---- */

typedef struct bz_engine bz_engine;

enum bz_backend {
    BZ_BACKEND_CPU,       /* threads and SIMD */
    BZ_BACKEND_REFERENCE, /* one obvious loop per op, sums in double: slow, the oracle */
    BZ_BACKEND_GPU,       /* WebGPU, in the wasm build only */
};

struct bz_engine_options {
    enum bz_backend backend;
    unsigned n_threads;     /* 0: one per core */
    const char *store;      /* root of the Ollama store; NULL: where Ollama keeps it */
    bool vocab_only;        /* tokenizer only: enough for a vocabulary file */
    bool plain_kernels;     /* GPU: no subgroups, even where the device has them */
    bool no_matrix_kernels; /* GPU: no products of small matrices by subgroups */
};

/* `model` is a path to a GGUF file, or a name in the Ollama store such as "gemma4:e2b". The store's
 * adapter, system prompt and sampling options come along.
 *
 * The file stays mapped, guarded by a handler of SIGBUS. If it is changed or cut short while in
 * use, or its drive goes away, the next step is BZ_ERR_IO. Every other SIGBUS goes to the handler
 * before it, and a later one must do the same. A host that blocks SIGBUS has no such guard. */
enum bz_status bz_engine_open(bz_engine **out, const char *model,
                              const struct bz_engine_options *options, struct bz_err *err);
void bz_engine_close(bz_engine *e);

enum bz_chat_variant { BZ_CHAT_SMALL, BZ_CHAT_LARGE };

struct bz_info {
    uint32_t n_layer, n_embd, n_vocab, n_context; /* n_context: as trained */
    uint64_t n_params, weight_bytes;              /* of the text model */
    uint64_t bytes_a_token;                       /* weights that one decoded token reads */
    uint32_t n_canvas; /* tokens that a diffusion model denoises together; 0: no diffusion model */
    enum bz_chat_variant chat_variant; /* which template the model was trained with */
    const char *system;                /* the store's default system prompt, or NULL */
    const char *messages;              /* the store's opening messages, a JSON array, or NULL */
};
struct bz_info bz_engine_info(const bz_engine *e);

/* ---- text ---- */

/* Ids of a raw prompt, to be freed with bz_free. Text that spells a special token, such as <turn|>,
 * is that token, so its author can speak in any role; with `plain` no text is a special token. For
 * a conversation there is bz_chat_tokenize. */
enum bz_status bz_tokenize(const bz_engine *e, const char *text, size_t n_bytes, bool bos,
                           bool plain, int32_t **ids, size_t *n_ids, struct bz_err *err);

/* The text of ids, NUL-ended, to be freed with bz_free. `specials`: control tokens show theirs. */
enum bz_status bz_detokenize(const bz_engine *e, const int32_t *ids, size_t n_ids, bool specials,
                             char **text, size_t *n_bytes, struct bz_err *err);

struct bz_chat_options {
    enum bz_chat_variant variant;
    bool thinking;
    bool no_generation_prompt; /* the history only */
};

/* Render {"messages": [...], "tools": [...], "begun": {"reasoning", "content"}}, in OpenAI's form,
 * as the text of the prompt, to be freed with bz_free. "begun" (may be absent) is how the answer
 * begins. The text is for people: in it a tag of the format looks like a message that spells it. */
enum bz_status bz_chat_render(const char *json, size_t n_bytes,
                              const struct bz_chat_options *options, char **prompt, size_t *n_out,
                              struct bz_err *err);

/* The same conversation as the ids of the prompt, to be freed with bz_free. Only the format itself
 * makes special tokens: what messages and tools say is plain text, whatever it spells. *in_thought
 * (may be NULL) says whether the answer begins inside a thought. */
enum bz_status bz_chat_tokenize(const bz_engine *e, const char *json, size_t n_bytes,
                                const struct bz_chat_options *options, int32_t **ids, size_t *n_ids,
                                bool *in_thought, struct bz_err *err);

void bz_free(void *p); /* for what the library allocated; NULL is fine */

/* ---- adapters: LoRA, several at once, changed between steps ---- */

/* `path` is a GGUF adapter or a PEFT folder. *id names the adapter from now on. Sessions keep their
 * caches: what was computed before stays as it was. */
enum bz_status bz_adapter_add(bz_engine *e, const char *path, float scale, int *id,
                              struct bz_err *err);
enum bz_status bz_adapter_scale(bz_engine *e, int id, float scale, struct bz_err *err);
enum bz_status bz_adapter_remove(bz_engine *e, int id, struct bz_err *err);

/* ---- session: a conversation ---- */

typedef struct bz_session bz_session;

/* What keys and values are kept as. Halves take half the memory and are off by up to 1 in 2,048. */
enum bz_cache { BZ_CACHE_F32, BZ_CACHE_F16 };

struct bz_session_options {
    uint32_t n_context; /* it can hold; 0: the store's wish, else 4096, or as trained if less */
    uint32_t n_batch;   /* tokens computed together while reading a prompt; 0: 256 */
    enum bz_cache cache;
    /* After a batch of a feed; within each step. False stops with BZ_ERR_CANCELLED. May be NULL. */
    bool (*on_batch)(void *ctx, uint32_t done, uint32_t total), (*go_on)(void *ctx);
    void *ctx;
};

enum bz_status bz_session_open(bz_session **out, bz_engine *e,
                               const struct bz_session_options *options, struct bz_err *err);
void bz_session_close(bz_session *s);

/* Memory that such a session would take; UINT64_MAX where there is too little to find out. */
uint64_t bz_session_bytes(const bz_engine *e, const struct bz_session_options *options);

/* Called with a position's logits (n_vocab, soft-capped); false stops with BZ_ERR_CANCELLED. */
typedef bool (*bz_logits_fn)(void *ctx, uint32_t position, const float *logits);

/* Append tokens. The logits of the last n_logits tokens go to on_logits, in order. Unless n_logits
 * is 0, the last token's logits are kept for bz_session_sample. Rows without logits leave the
 * network early, so ask for few. On failure the session is as it was before, but without its last
 * logits; or empty, when the sliding layers no longer hold what was there. */
enum bz_status bz_session_feed(bz_session *s, const int32_t *ids, size_t n, size_t n_logits,
                               bz_logits_fn on_logits, void *ctx, struct bz_err *err);

/* Tokenize (with <bos> at the very start) and append, keeping the last logits. */
enum bz_status bz_session_feed_text(bz_session *s, const char *text, struct bz_err *err);

/* Make the session hold exactly these tokens, keeping the longest common beginning. */
enum bz_status bz_session_set(bz_session *s, const int32_t *ids, size_t n, struct bz_err *err);

/* Forget tokens past n. *kept says how many remain: n, or 0 when the sliding layers no longer hold
 * what n needs (then feed the tokens again). */
enum bz_status bz_session_truncate(bz_session *s, uint32_t n, uint32_t *kept, struct bz_err *err);

const int32_t *bz_session_tokens(const bz_session *s, size_t *n);
const float *bz_session_logits(const bz_session *s); /* of the last token fed, or NULL */

/* A snapshot of the session, to be freed with bz_free; and back. It fits only the same model file
 * with the same adapters. A session with the other kind of cache (f32, halves) converts its
 * numbers. A restored session has no logits. A session whose restore failed is empty. */
enum bz_status bz_session_save(bz_session *s, void **data, size_t *n_bytes, struct bz_err *err);
enum bz_status bz_session_restore(bz_session *s, const void *data, size_t n_bytes,
                                  struct bz_err *err);

/* ---- choosing the next token ---- */

struct bz_bias {
    int32_t id;
    float add; /* to the logit; -INFINITY forbids the token */
};

/* Applied in this order. A zeroed struct is neutral throughout: always the best token. */
struct bz_sampling {
    /* Of a grammar: bit i % 32 of word i / 32 is set where token i may be drawn. NULL: all may. */
    const uint32_t *mask;
    const struct bz_bias *bias; /* n_bias of them; the file's suppressed tokens are always added */
    size_t n_bias;
    uint32_t penalty_window; /* how many of the last tokens the penalties look at; 0: none */
    float repeat_penalty; /* logits of seen tokens: > 0 divided, <= 0 multiplied. Neutral 1 or 0 */
    float frequency_penalty; /* subtracted once per occurrence. Neutral 0 */
    float presence_penalty;  /* subtracted once if seen. Neutral 0 */
    uint32_t top_k;          /* keep the k best. Neutral 0 */
    float top_p;             /* keep the best until their probability reaches p. Neutral 1 or 0 */
    float min_p;             /* drop what is less likely than min_p times the best. Neutral 0 */
    float temperature;       /* 0: always the best token */
    uint64_t seed;           /* same seed, same text */
};

/* Of the store's parameters or the file's metadata, else Gemma's (1.0, top-k 64, top-p 0.95). */
struct bz_sampling bz_sampling_defaults(const bz_engine *e);

/* Draw from the kept logits; sampling NULL: the defaults. */
enum bz_status bz_session_sample(bz_session *s, const struct bz_sampling *sampling, int32_t *id,
                                 struct bz_err *err);

/* ---- constraints: texts that keep to a schema, a pattern or a grammar ---- */

typedef struct bz_constraint bz_constraint;

/* `json` is an object. A text keeps to at most one of "schema": a JSON Schema, "json": true (any
 * object), "regex": "..." and "gbnf": "...". "indent": true, JSON may be laid out; "lenient": true,
 * keywords that cannot be kept are left out, and no error. "tools": [{"name", "parameters": a
 * schema, "strict"}] may be called, and "call" is "auto" (text or calls), "required" or "none";
 * "one_call": true, at most one. "thinking": true, a thought may come first; "in_thought": true,
 * the prompt ends inside one. An engine compiles its last few once, and must outlive them. */
enum bz_status bz_constraint_open(bz_constraint **out, bz_engine *e, const char *json,
                                  size_t n_bytes, struct bz_err *err);
void bz_constraint_close(bz_constraint *c);

/* ---- diffusion: a model that denoises a canvas of n_canvas tokens in steps ----
 *
 * It reads and generates text like any other, but draws no next token: there are no logits, and of
 * bz_sampling the seed alone matters. */

enum bz_canvas_stop { BZ_CANVAS_GOES_ON, BZ_CANVAS_STABLE, BZ_CANVAS_STEPS };
struct bz_canvas {         /* after a step */
    uint32_t canvas, step; /* of the text, from 0; of the canvas, from 1 */
    uint32_t n, n_accepted;
    const int32_t *ids, *best; /* what the next step begins with; the text, should it stop here */
    const float *entropy;      /* of each position, in nats */
    const uint32_t *accepted;  /* bit i % 32 of word i / 32 */
    float mean_entropy;
    enum bz_canvas_stop stopped;
};

struct bz_diffusion {
    uint32_t n_steps, n_stable; /* at most; so many in a row must leave `best` as it was */
    float t_min, t_max;         /* temperature: of a step past the last; of the first step */
    float entropy_bound;        /* nats that the accepted positions have together, about */
    float confidence;           /* nats: mean entropy below which a stable canvas is text */
    uint32_t n_canvases;        /* at most; 0: no limit */
    const int32_t *canvas;      /* what the first one begins with; NULL, or -1: random tokens */
    const bool *fixed;          /* which of those stay; NULL: none */
    const int32_t *random;      /* n_random canvases instead of random ones, in order of use: the */
    const int32_t *sampled; /* first, one a step, the next first ...; n_sampled draws, one a step */
    size_t n_random, n_sampled;
    void *ctx;                                             /* for the callback */
    bool (*on_step)(void *ctx, const struct bz_canvas *c); /* may be NULL. False stops. */
};
struct bz_diffusion bz_diffusion_defaults(const bz_engine *e); /* as the file says */

/* ---- generating text ---- */

enum bz_stop { BZ_STOP_END, BZ_STOP_STRING, BZ_STOP_LENGTH, BZ_STOP_CONTEXT, BZ_STOP_CANCELLED };

struct bz_generate_options {
    struct bz_sampling sampling;
    uint32_t n_max;          /* tokens at most; 0: until the model ends or the context is full */
    const char *const *stop; /* strings that end the text and are not part of it */
    size_t n_stop;
    bool ignore_end;                      /* go on past end-of-turn tokens (benchmarks) */
    bool specials;                        /* show control tokens' text, as a chat parser wants */
    bz_constraint *constraint;            /* what the text keeps to; NULL: nothing. No diffusion */
    bool one_by_one;                      /* read tokens that it forces one by one, not together */
    const struct bz_diffusion *diffusion; /* NULL: the defaults */
    void *ctx;                            /* for the callback */
    /* Pieces of text, whole code points; may be NULL. False stops. */
    bool (*on_text)(void *ctx, const char *text, size_t n_bytes);
};

struct bz_generate_options bz_generate_defaults(const bz_engine *e);

struct bz_generated {
    size_t first, n; /* the new tokens: bz_session_tokens()[first .. first + n) */
    enum bz_stop stop;
    uint32_t n_canvases, n_steps; /* of a diffusion model: finished canvases, and steps of all */
};

/* Go on from the last logits. Every token drawn is fed, the one that ends the text included. A
 * diffusion model goes on from the text; what a canvas has after the end is dropped. */
enum bz_status bz_generate(bz_session *s, const struct bz_generate_options *options,
                           struct bz_generated *result, struct bz_err *err);

#ifdef __cplusplus
}
#endif
#endif
