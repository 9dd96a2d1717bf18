/* ollama.h - Ollama's store of models.
 *
 *     <root>/manifests/<host>/<namespace>/<model>/<tag>    JSON: which blobs make up a model
 *     <root>/blobs/sha256-<64 hex>                         their bytes
 *
 * ollama_name.c (names) and ollama_manifest.c (JSON) know no files at all, so a browser that was
 * handed a directory can use them; ollama_disk.c walks the disk, ollama.c opens models, and
 * ollama_change.c copies and deletes them. Nothing that a name, a manifest or a symbolic link says
 * can reach a file outside the root.
 */
#ifndef BEZEL_IO_OLLAMA_H
#define BEZEL_IO_OLLAMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* --- names: [scheme://][host/][namespace/]model[:tag] --- */

#define OLLAMA_MAX_HOST 350
#define OLLAMA_MAX_PART 80
#define OLLAMA_MAX_NAME (OLLAMA_MAX_HOST + 3 * OLLAMA_MAX_PART + 4) /* with separators and NUL */

enum ollama_part { OLLAMA_HOST, OLLAMA_NAMESPACE, OLLAMA_NAME, OLLAMA_TAG, OLLAMA_N_PARTS };

/* All four parts, valid as single path components. */
struct ollama_name {
    char host[OLLAMA_MAX_HOST + 1];
    char space[OLLAMA_MAX_PART + 1];
    char model[OLLAMA_MAX_PART + 1];
    char tag[OLLAMA_MAX_PART + 1];
};

/* Missing parts become registry.ollama.ai, library and latest. */
enum bz_status ollama_parse_name(struct ollama_name *out, struct str text, struct bz_err *err);

bool ollama_part_valid(enum ollama_part part, struct str s);
const char *ollama_name_part(const struct ollama_name *n, enum ollama_part part);
bool ollama_name_set(struct ollama_name *n, enum ollama_part part, struct str s); /* if valid */

/* As Ollama lists it: default host and namespace left out, the tag always there. */
void ollama_short_name(const struct ollama_name *n, char out[OLLAMA_MAX_NAME]);

/* Equal but for the case of ASCII letters. */
bool ollama_text_same(const char *a, const char *b);

/* --- manifests and the small JSON blobs --- */

enum ollama_kind {
    OLLAMA_LAYER_MODEL, /* several: shards of one GGUF, or (older) model and projector */
    OLLAMA_LAYER_PROJECTOR,
    OLLAMA_LAYER_ADAPTER,
    OLLAMA_LAYER_DRAFT,
    OLLAMA_LAYER_TEMPLATE,
    OLLAMA_LAYER_SYSTEM,
    OLLAMA_LAYER_PARAMS,
    OLLAMA_LAYER_MESSAGES,
    OLLAMA_LAYER_LICENSE,
    OLLAMA_LAYER_CONFIG,
};

struct ollama_layer {
    enum ollama_kind kind;
    char digest[65]; /* 64 hex digits as written */
    uint64_t size;
    const char *path; /* of the blob, resolved; NULL before ollama_open */
};

struct ollama_manifest {
    struct ollama_layer *layers; /* of the kinds above, in the manifest's order; config last */
    size_t n_layers;
    bool has_tensors;    /* tensor or json layers: an MLX model, not GGUF */
    uint64_t total_size; /* of every layer, known or not */
};

/* Every text and list of the results lives in `a`. */
enum bz_status ollama_parse_manifest(struct ollama_manifest *out, struct str json, struct arena *a,
                                     struct bz_err *err);

/* The i-th layer of a kind, or NULL. */
const struct ollama_layer *ollama_layer_at(const struct ollama_manifest *m, enum ollama_kind kind,
                                           size_t i);

/* A blob that a manifest names, of whatever kind its layer is. */
struct ollama_blob {
    char digest[65]; /* in small letters */
    uint64_t size;
};

struct ollama_blobs {
    struct ollama_blob *v;
    size_t n;
};

/* Those of every layer and of the config: also of kinds that nobody here reads. */
enum bz_status ollama_parse_blobs(struct ollama_blobs *out, struct str json, struct arena *a,
                                  struct bz_err *err);

/* Absent members are empty with p == NULL. */
struct ollama_config {
    struct str model_format, model_family, model_type, file_type, renderer, parser, remote_host;
};

enum bz_status ollama_parse_config(struct ollama_config *out, struct str json, struct arena *a,
                                   struct bz_err *err);

struct ollama_int {
    bool set;
    int64_t v;
};

struct ollama_num {
    bool set;
    double v;
};

/* The options that Bezel has an ear for; others in the file are ignored. */
struct ollama_params {
    struct ollama_int num_ctx, num_predict, top_k, repeat_last_n, seed;
    struct ollama_num temperature, top_p, min_p, repeat_penalty, presence_penalty,
        frequency_penalty;
    const struct str *stop;
    size_t n_stop;
};

enum bz_status ollama_parse_params(struct ollama_params *out, struct str json, struct arena *a,
                                   struct bz_err *err);

struct ollama_message {
    struct str role, content;
};

enum bz_status ollama_parse_messages(struct ollama_message **out, size_t *n, struct str json,
                                     struct arena *a, struct bz_err *err);

/* --- the store on disk --- */

/* Where the store is: `wish` if not NULL, else $OLLAMA_MODELS, else ~/.ollama/models, else the
 * place of the Linux service. The path is resolved; the caller frees *out with mem_free. */
enum bz_status ollama_find_root(char **out, const char *wish, struct bz_err *err);

struct ollama_entry {
    struct ollama_name name;
    char short_name[OLLAMA_MAX_NAME];
    char digest[65]; /* of the first model layer; "" where there is none */
    uint64_t size;   /* of all layers */
};

struct ollama_list {
    struct ollama_entry *entries; /* by short name */
    size_t n;
    size_t n_unreadable; /* manifests left out because they make no sense */
};

/* `root` is a store's directory, here and below. */
enum bz_status ollama_list(struct ollama_list *out, const char *root, struct bz_err *err);
void ollama_list_free(struct ollama_list *l);

struct ollama_model {
    struct ollama_name name; /* in the case that the store has it */
    struct ollama_manifest manifest;
    struct ollama_config config;
    struct ollama_params params;
    struct str system, template; /* p == NULL: none */
    struct ollama_message *messages;
    size_t n_messages;
    struct arena arena;
};

/* Find a model (exact name first, then whatever the case of its letters), read its manifest and its
 * small blobs, and check that every blob is there in its stated size. On failure *out is
 * untouched. */
enum bz_status ollama_open(struct ollama_model *out, const char *root, const char *name,
                           struct bz_err *err);
void ollama_close(struct ollama_model *m);

/* --- changing the store ---
 *
 * One change at a time: under <root>/partial/manifests.lock, which `npx bezel` and the server keep
 * too. A lock that nobody has touched for a while was left by a process that is gone. */

/* The model `from` under another name too, in place of what has that name. */
enum bz_status ollama_copy(const char *root, const char *from, const char *to, struct bz_err *err);

/* Delete a model, and its blobs that no other model has. Refused while a pull needs one of them. */
enum bz_status ollama_remove(const char *root, const char *name, struct bz_err *err);

/* Called with the bytes done so far; false cancels. */
typedef bool (*ollama_progress)(void *ctx, uint64_t done, uint64_t total);

/* Does the blob hash to its name? `progress` may be NULL. */
enum bz_status ollama_verify(const struct ollama_layer *l, ollama_progress progress, void *ctx,
                             struct bz_err *err);

#endif
