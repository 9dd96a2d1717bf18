/* engine.h - structs of an engine, a session and a generation; private to src/ and src/wasm/. */
#ifndef BEZEL_ENGINE_H
#define BEZEL_ENGINE_H

#include "bezel.h"

#include "grammar/constraint.h"
#include "io/locate.h"
#include "model/forward.h"
#include "model/lora.h"
#include "text/sampler.h"
#include "text/stop.h"
#include "text/tokenizer.h"

struct engine_adapter {
    struct attached attached;
    bool used;
    uint32_t serial; /* no other adapter of this engine ever has it */
    uint64_t digest; /* of its numbers: the same adapter has the same anywhere */
    float scale;
};

enum { WORN_MIXED = 0 };         /* no engine's `worn` */
enum { DEFAULT_CONTEXT = 4096 }; /* tokens, where neither caller nor store says */
enum { CONSTRAINTS_KEPT = 4 };   /* compiled ones of an engine, for the requests that follow */

struct bz_engine {
    struct located file;
    struct tokenizer *tokenizer;
    struct backend backend;
    struct model model;
    bool has_model;
    struct engine_adapter *adapters; /* an id is an index; removed ones leave a gap */
    size_t n_adapters;
    uint32_t n_serials;
    uint64_t adapted; /* names the adapters and their scales: other ones, another number */
    uint64_t worn;    /* the same by what they do: equal in every engine, and with none of effect */
    uint32_t n_trainings; /* begun and ended: what was recorded with others does not fit any more */
    enum bz_chat_variant variant;
    struct vocab *vocab; /* what masks need to know of the tokenizer; made with the first one */
    struct bz_constraint *constraints[CONSTRAINTS_KEPT]; /* the last one first */
    /* From the store's manifest, NUL-ended: */
    char *system;   /* or NULL */
    char *messages; /* a JSON array, or NULL */
    char **stop;    /* n_stop strings that end a text */
    size_t n_stop;
};

/* Build an engine on an opened file, which it takes over in every case. `name` is used for the
 * model where the file has no name. On failure *out is untouched. `later`: engine->tokenizer has
 * only begun, see tokenizer_read_on. */
enum bz_status engine_open(bz_engine **out, struct located *file, const char *name,
                           const struct bz_engine_options *options, bool later, struct bz_err *err);

/* Hang an adapter onto the model; it is taken over in every case. */
enum bz_status engine_add_adapter(bz_engine *e, struct adapter *adapter, float scale, int *id,
                                  struct bz_err *err);

struct bz_constraint {
    struct constraint *compiled;
    char *text; /* n bytes of JSON */
    size_t n;
    uint32_t n_users; /* the engine is one while it keeps it */
    bool broken;      /* a failure in use may stay with what was compiled */
};

/* The engine ends: it keeps no constraint, and has no vocabulary for them. */
void engine_forget_constraints(struct bz_engine *e);

struct bz_session {
    struct bz_engine *engine;
    struct kv_cache kv;
    struct acts acts;
    struct sampler sampler;
    int32_t *tokens; /* kv.n_ctx; the first kv.n_past are in the cache */
    float *logits;   /* n_vocab: of the last token read */
    bool has_logits;
    uint32_t *canvas; /* of a diffusion model: its canvas as the host knows it (ops/canvas.h) */
    uint64_t worn;    /* what the engine's was when the cache was computed */
    uint32_t n_batch;
    bool (*on_batch)(void *ctx, uint32_t done, uint32_t total);
    bool (*go_on)(void *ctx);
    void *callback_ctx; /* of both */
};

/* Are these tokens of the vocabulary, and is there room for them? */
enum bz_status session_check_ids(const struct bz_session *s, const int32_t *ids, size_t n,
                                 struct bz_err *err);

/* The first half of bz_session_set: keep the longest beginning of `ids` that is in the cache, such
 * that reading the rest, ids[*kept] to the end, leaves logits. The rest is empty where the logits
 * exist already. Ids that do not fit change nothing. */
enum bz_status session_keep(struct bz_session *s, const int32_t *ids, size_t n, uint32_t *kept,
                            struct bz_err *err);

/* These n tokens were read: the session has them, and the cache their positions. */
void session_advance(struct bz_session *s, const int32_t *ids, uint32_t n);

/* The origin of the session's snapshots. A cache that several sets of adapters made has none. */
enum bz_status session_origin(const struct bz_session *s, struct kv_origin *out,
                              struct bz_err *err);

/* bz_session_restore for a snapshot that need not lie in memory. */
enum bz_status session_restore(struct bz_session *s, const struct source *snap, struct bz_err *err);

/* Zeros become neutral values; what makes no sense is an error. */
enum bz_status sampling_check(struct bz_sampling *p, struct bz_err *err);

/* A run of its engine's backend that can be stopped. */
static inline struct run session_run(const struct bz_session *s)
{
    return (
        struct run) { .be = &s->engine->backend, .go_on = s->go_on, .go_on_ctx = s->callback_ctx };
}

/* Does its model denoise canvases? */
static inline bool session_diffuses(const struct bz_session *s)
{
    return s->acts.canvas.n > 0;
}

/* A part of s->canvas, by the tensor of s->acts.canvas that it mirrors. */
static inline void *session_canvas(const struct bz_session *s, const struct tensor *part)
{
    return s->canvas + (part->first - s->acts.canvas.state.first);
}

/* The canvas of a text being generated. */
struct diffusion {
    struct bz_diffusion how;
    size_t n_random, n_sampled; /* of the caller's canvases that were used */
    bool begun;                 /* s->canvas is being denoised */
};

enum { FORCED_MOST = 32 }; /* tokens that are read together without being drawn */

/* What may come next of a text. */
struct next_tokens {
    int32_t forced[FORCED_MOST]; /* n_forced tokens that must come: nothing is drawn */
    uint32_t n_forced;
    const uint32_t *mask; /* else: as struct bz_sampling has it, until the next token */
};

/* A text being generated. Between tokens `ready` holds the piece that became certain. */
struct generation {
    const struct bz_generate_options *options; /* outlive it */
    struct guide *guide;                       /* of the constraint; NULL: there is none */
    struct next_tokens next;
    uint32_t *mask; /* with a guide: room, where its mask is not all that is asked for */
    struct detok detok;
    struct stop_filter stop;
    struct buf text, ready;
    uint32_t ends[FORCED_MOST], n_ends; /* where in `ready` the text of each forced token ends */
    struct bz_generated result;
    struct diffusion diffusion;
    bool done; /* then result.stop says why, and `ready` has the last piece */
};

/* On failure there is nothing to close. */
enum bz_status generation_begin(struct generation *g, const struct bz_session *s,
                                const struct bz_generate_options *options, struct bz_err *err);

/* Draw a token, read it, and advance by it; or read all tokens that must come. */
enum bz_status generation_next(struct generation *g, struct bz_session *s, struct bz_err *err);

/* For a backend that draws and reads by itself, in this order:
 *
 * has_room: may there be another token? Empties `ready`.
 * look: what may come next, into `next`, of a text that has not ended.
 * advance: the text has this token; it may be the last.
 * resume: the last n tokens of the session are the text's already. */
bool generation_has_room(struct generation *g, const struct bz_session *s);
enum bz_status generation_look(struct generation *g, const struct bz_session *s,
                               struct bz_err *err);
enum bz_status generation_advance(struct generation *g, const struct bz_session *s, int32_t id,
                                  struct bz_err *err);
enum bz_status generation_resume(struct generation *g, const struct bz_session *s, uint32_t n,
                                 struct bz_err *err);

/* Denoise the canvas by one step; begin one first where none is begun. A canvas that is finished
 * becomes text, and is read. */
enum bz_status diffusion_next(struct generation *g, struct bz_session *s, struct bz_err *err);

/* The parts of that, for a backend that runs steps by itself.
 *
 * begin: write the next canvas, and zeros into `soft`.
 * noise: where the caller has tokens for the coming step, write them.
 * advance: the words that a step shows were read into s->canvas. Unless the canvas goes on, *n of
 *     its `best` are text: read them, then call taken. */
enum bz_status diffusion_begin(struct generation *g, struct bz_session *s, struct run *r,
                               struct bz_err *err);
enum bz_status diffusion_noise(struct generation *g, struct bz_session *s, struct run *r,
                               struct bz_err *err);
enum bz_status diffusion_advance(struct generation *g, struct bz_session *s, uint32_t *n,
                                 struct bz_err *err);
enum bz_status diffusion_taken(struct generation *g, const struct bz_session *s,
                               struct bz_err *err);

/* The end of the text: what was held back comes out. */
void generation_finish(struct generation *g, enum bz_stop why);
/* Ends the text where no more is wanted, or fits. */
void generation_check_room(struct generation *g, const struct bz_session *s);
/* Text that could not be kept is an error, also when it was the last. */
enum bz_status generation_check_text(const struct generation *g, struct bz_err *err);

void generation_close(struct generation *g);

#endif
