/* inspect.h - what is in a model file, as facts; inspect_text.c and inspect_json.c show them. */
#ifndef BEZEL_CLI_INSPECT_H
#define BEZEL_CLI_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "io/adapter.h"
#include "io/locate.h"
#include "model/config.h"

enum inspect_kind {
    INSPECT_TEXT,       /* a text model; its towers, if any, are in another file */
    INSPECT_SINGLE,     /* text and towers in one file, as Ollama's converter makes it */
    INSPECT_DIFFUSION,  /* a text model that denoises a canvas of tokens */
    INSPECT_VOCABULARY, /* no tensors */
    INSPECT_MMPROJ,     /* towers alone */
    INSPECT_ADAPTER,    /* LoRA */
    INSPECT_OTHER,      /* another architecture */
};

enum inspect_role {
    ROLE_EMBEDDING,
    ROLE_PLE,
    ROLE_ATTENTION,
    ROLE_FFN,
    ROLE_EXPERTS,
    ROLE_PLE_PROJ,  /* what brings per-layer embeddings into the stream */
    ROLE_SELF_COND, /* what brings a step's predictions into the next step's canvas */
    ROLE_SMALL,     /* norms and scalars */
    ROLE_VISION,
    ROLE_AUDIO,
    ROLE_UNKNOWN, /* no tensor of Gemma 4 is called so */
    N_ROLE,
};

/* A heap of tensors. */
struct inspect_sum {
    uint64_t n_tensors, n_params, n_bytes;
};

enum { INSPECT_N_TYPES = 64 }; /* more than GGUF has tensor types */

struct inspect {
    const char *model; /* as it was asked for */
    struct located file;
    bool is_open;           /* file is; not so for adapters in PEFT's form */
    struct adapter adapter; /* of INSPECT_ADAPTER */

    enum inspect_kind kind;
    struct str arch, name; /* empty: the file does not say */
    const char *file_type; /* NULL: the file does not say */
    struct inspect_sum all, roles[N_ROLE], types[INSPECT_N_TYPES];

    bool has_config;
    struct config config;
    uint32_t kv_context[2]; /* a usual context, and the longest; 0: the same as the first */
    uint64_t kv_bytes[2];

    bool runs;         /* this build's text engine takes it */
    struct bz_err why; /* else the first reason against it */
    uint64_t bytes_a_token;
    uint64_t bytes_a_step;     /* of a diffusion model, whose canvas uses every expert */
    uint32_t n_encoder_scales; /* layers of a diffusion model with a scale for the encoder pass */
};

const char *inspect_kind_name(enum inspect_kind k);
const char *inspect_role_name(enum inspect_role r);
enum inspect_role inspect_role_of(struct str tensor_name);

/* Facts about an opened file. `model` is the name that was asked for, and must outlive the facts.
 * For a file that cannot run, `why` says the reason; that is no failure. Takes the file over in
 * every case. On failure *out is untouched. */
enum bz_status inspect_file(struct inspect *out, struct located *file, const char *model,
                            struct bz_err *err);

/* The same for an adapter in PEFT's form, which is taken over. */
void inspect_peft(struct inspect *out, struct adapter *adapter, const char *model);

/* Opens a GGUF path, a name in the store (`store` NULL: Ollama's own place) or an adapter in PEFT's
 * form. A file that cannot run is no failure: then `why` says it. On failure *out is untouched. */
enum bz_status inspect_open(struct inspect *out, const char *model, const char *store,
                            struct bz_err *err);
void inspect_close(struct inspect *x);

/* The keys that the file of a diffusion model may leave out. */
#define KEY_CANVAS_LENGTH     "diffusion.canvas_length"
#define KEY_CANVAS_STEPS      "diffusion.eb_max_steps"
#define KEY_CANVAS_T_MAX      "diffusion.eb_t_max"
#define KEY_CANVAS_T_MIN      "diffusion.eb_t_min"
#define KEY_CANVAS_BOUND      "diffusion.eb_entropy_bound"
#define KEY_CANVAS_STABILITY  "diffusion.eb_stability_threshold"
#define KEY_CANVAS_CONFIDENCE "diffusion.eb_confidence_threshold"

/* Does the file leave that key to its default? */
bool inspect_is_default(const struct inspect *x, const char *key);

struct inspect_wish {
    bool keys, tensors; /* list them too */
};

void inspect_put_text(struct buf *b, const struct inspect *x, struct inspect_wish wish);
void inspect_put_json(struct buf *b, const struct inspect *x, struct inspect_wish wish);

/* "SSSSF" and 7: the shortest run of sliding (S) and global (F) layers that repeats, or all. */
struct inspect_pattern {
    char unit[MAX_LAYERS + 1];
    uint32_t times;
};
void inspect_layer_pattern(struct inspect_pattern *out, const struct config *c);

#endif
