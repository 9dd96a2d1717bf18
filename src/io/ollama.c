/* ollama.c - owns the way from a model's name to checked blobs and texts. Reads only
 * (ollama_change.c writes); what GGUF is, it refuses to know.
 */
#include "io/ollama.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sha256.h"
#include "io/ollama_disk.h"
#include "io/quote.h"
#include "io/source.h"

#define MAX_TEXT     (4u << 20) /* config, params, system, template */
#define MAX_MESSAGES (16u << 20)
#define N_NEAR       5 /* names offered when one is not found */

static enum bz_status read_manifest(struct ollama_manifest *out, const char *path, struct arena *a,
                                    struct bz_err *err)
{
    struct buf text = { 0 };
    enum bz_status st = disk_read(&text, path, MAX_MANIFEST, err);
    if (!st) st = ollama_parse_manifest(out, buf_str(&text), a, err);
    buf_free(&text);
    return st;
}

/* --- listing --- */

static enum bz_status list_one(struct ollama_list *l, const char *root,
                               const struct ollama_name *name, struct bz_err *err)
{
    char path[PATH_MAX];
    struct arena a = { 0 };
    struct ollama_manifest m;
    enum bz_status st = disk_manifest_path(path, root, name, err);
    if (!st) st = read_manifest(&m, path, &a, err);
    if (!st) {
        struct ollama_entry *e = &l->entries[l->n++];
        const struct ollama_layer *model = ollama_layer_at(&m, OLLAMA_LAYER_MODEL, 0);
        e->name = *name;
        ollama_short_name(name, e->short_name);
        if (model) memcpy(e->digest, model->digest, sizeof e->digest);
        e->size = m.total_size;
    } else if (st != BZ_ERR_MEMORY) {
        l->n_unreadable++; /* one broken manifest must not hide the others */
        st = BZ_OK;
    }
    arena_free(&a);
    return st;
}

enum bz_status ollama_list(struct ollama_list *out, const char *root, struct bz_err *err)
{
    char real[PATH_MAX];
    struct ollama_name *names = NULL;
    struct ollama_list l = { 0 };
    size_t n = 0;
    enum bz_status st = disk_root(real, root, err);
    if (!st) st = disk_names(&names, &n, real, NULL, err);
    if (!st) {
        l.entries = mem_alloc(n, sizeof *l.entries);
        if (!l.entries) st = fail_memory(err, n * sizeof *l.entries);
    }
    for (size_t i = 0; !st && i < n; i++) st = list_one(&l, real, &names[i], err);
    mem_free(names);
    if (st) ollama_list_free(&l);
    else *out = l;
    return st;
}

void ollama_list_free(struct ollama_list *l)
{
    mem_free(l->entries);
    *l = (struct ollama_list) { 0 };
}

/* --- finding one model --- */

#define DISTANCE_MAX 64

/* Edits (insert, delete, replace a letter) from a to b; long names count by their beginnings. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[DISTANCE_MAX + 1], na = strnlen(a, DISTANCE_MAX), nb = strnlen(b, DISTANCE_MAX);
    for (size_t j = 0; j <= nb; j++) row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[nb];
}

/* Put the few names nearest to `wish` in front, nearest first, equals in their order. */
static size_t move_near_first(struct ollama_name *names, size_t n, const struct ollama_name *wish)
{
    char want[OLLAMA_MAX_NAME], have[OLLAMA_MAX_NAME];
    size_t k = 0;
    ollama_short_name(wish, want);
    for (; k < n && k < N_NEAR; k++) {
        size_t best = k, least = SIZE_MAX;
        for (size_t i = k; i < n; i++) {
            ollama_short_name(&names[i], have);
            size_t d = edit_distance(want, have);
            if (d < least) least = d, best = i;
        }
        struct ollama_name t = names[best];
        memmove(&names[k + 1], &names[k], (best - k) * sizeof t);
        names[k] = t;
    }
    return k;
}

static enum bz_status fail_no_model(const char *root, const char *asked,
                                    const struct ollama_name *wish, struct bz_err *err)
{
    struct ollama_name *names = NULL;
    struct buf text = { 0 };
    size_t n = 0;
    enum bz_status st = disk_names(&names, &n, root, NULL, err);
    if (st) return st;
    size_t shown = move_near_first(names, n, wish);
    for (size_t i = 0; i < shown; i++) {
        char have[OLLAMA_MAX_NAME];
        ollama_short_name(&names[i], have);
        buf_printf(&text, "%s%.80s", i ? ", " : "; it has: ", have);
    }
    if (n > shown) buf_printf(&text, " and %zu more", n - shown);
    if (n == 0) buf_puts(&text, ", which is empty");
    st = text.failed ? fail_memory(err, text.n)
                     : fail(err, BZ_ERR_NOT_FOUND, "no model named %s in %s%s",
                            quote(str_of(asked)).z, root, text.data);
    buf_free(&text);
    mem_free(names);
    return st;
}

/* The path of the manifest, and the name in the store's own case. */
enum bz_status ollama_find(char path[PATH_MAX], struct ollama_name *name, const char *root,
                           const char *asked, struct bz_err *err)
{
    enum bz_status st = ollama_parse_name(name, str_of(asked), err);
    if (st) return st;
    st = disk_manifest_path(path, root, name, err);
    if (st != BZ_ERR_NOT_FOUND) return st;
    struct ollama_name *names = NULL;
    size_t n = 0;
    st = disk_names(&names, &n, root, name, err);
    if (st) return st;
    if (n == 0) {
        st = fail_no_model(root, asked, name, err);
    } else {
        *name = names[0];
        st = disk_manifest_path(path, root, name, err);
    }
    mem_free(names);
    return st;
}

/* --- opening --- */

static enum bz_status find_blob(struct ollama_layer *l, const char *root, struct arena *a,
                                struct bz_err *err)
{
    char path[PATH_MAX], real[PATH_MAX];
    uint64_t size;
    int n = snprintf(path, sizeof path, "%s/blobs/sha256-%s", root, l->digest);
    if (n < 0 || (size_t)n >= sizeof path)
        return fail(err, BZ_ERR_ARGUMENT, "%.200s: the path is too long", root);
    enum bz_status st = disk_resolve_file(real, &size, root, path, err);
    if (st == BZ_ERR_NOT_FOUND)
        return fail(err, st, "blob sha256-%.12s... is missing from %s; pull the model again",
                    l->digest, root);
    if (st) return st;
    if (size != l->size)
        return fail(err, BZ_ERR_FORMAT,
                    "blob sha256-%.12s... has %" PRIu64 " bytes and the manifest says %" PRIu64,
                    l->digest, size, l->size);
    l->path = arena_copy_str(a, real, strlen(real));
    return l->path ? BZ_OK : fail_memory(err, strlen(real));
}

/* Ollama lets the last layer of a kind win. */
static const struct ollama_layer *last_layer(const struct ollama_manifest *m, enum ollama_kind kind)
{
    for (size_t i = m->n_layers; i-- > 0;)
        if (m->layers[i].kind == kind) return &m->layers[i];
    return NULL;
}

/* The text of a small layer, kept in the model's arena; p == NULL when there is no such layer. */
static enum bz_status read_layer_text(struct str *out, struct ollama_model *m,
                                      enum ollama_kind kind, uint64_t max, struct bz_err *err)
{
    const struct ollama_layer *l = last_layer(&m->manifest, kind);
    struct buf text = { 0 };
    *out = (struct str) { NULL, 0 };
    if (!l) return BZ_OK;
    enum bz_status st = disk_read(&text, l->path, max, err);
    if (!st) {
        out->p = arena_copy_str(&m->arena, text.data, text.n);
        out->n = text.n;
        if (!out->p) st = fail_memory(err, text.n);
    }
    buf_free(&text);
    return st;
}

static enum bz_status read_small_layers(struct ollama_model *m, struct bz_err *err)
{
    struct str text;
    struct arena *a = &m->arena;
    enum bz_status st = read_layer_text(&text, m, OLLAMA_LAYER_CONFIG, MAX_TEXT, err);
    if (!st && text.p) st = ollama_parse_config(&m->config, text, a, err);
    if (!st) st = read_layer_text(&text, m, OLLAMA_LAYER_PARAMS, MAX_TEXT, err);
    if (!st && text.p) st = ollama_parse_params(&m->params, text, a, err);
    if (!st) st = read_layer_text(&text, m, OLLAMA_LAYER_MESSAGES, MAX_MESSAGES, err);
    if (!st && text.p) st = ollama_parse_messages(&m->messages, &m->n_messages, text, a, err);
    if (!st) st = read_layer_text(&m->system, m, OLLAMA_LAYER_SYSTEM, MAX_TEXT, err);
    if (!st) st = read_layer_text(&m->template, m, OLLAMA_LAYER_TEMPLATE, MAX_TEXT, err);
    return st;
}

/* Is there a GGUF in it? */
static enum bz_status check_kind(const struct ollama_model *m, struct bz_err *err)
{
    bool has_model = ollama_layer_at(&m->manifest, OLLAMA_LAYER_MODEL, 0) != NULL;
    if (str_is(m->config.model_format, "safetensors") || (!has_model && m->manifest.has_tensors))
        return fail(err, BZ_ERR_UNSUPPORTED, "this is an MLX/safetensors model, not GGUF");
    if (!has_model && m->config.remote_host.n)
        return fail(err, BZ_ERR_UNSUPPORTED, "this model runs on %s; its weights are not here",
                    quote(m->config.remote_host).z);
    if (!has_model) return fail(err, BZ_ERR_FORMAT, "the manifest names no model weights");
    return BZ_OK;
}

enum bz_status ollama_open(struct ollama_model *out, const char *root, const char *name,
                           struct bz_err *err)
{
    char real[PATH_MAX], path[PATH_MAX], short_name[OLLAMA_MAX_NAME];
    struct ollama_model m = { 0 };
    enum bz_status st = disk_root(real, root, err);
    if (!st) st = ollama_find(path, &m.name, real, name, err);
    if (st) return st;
    st = read_manifest(&m.manifest, path, &m.arena, err);
    for (size_t i = 0; !st && i < m.manifest.n_layers; i++)
        st = find_blob(&m.manifest.layers[i], real, &m.arena, err);
    if (!st) st = read_small_layers(&m, err);
    if (!st) st = check_kind(&m, err);
    if (st) {
        ollama_short_name(&m.name, short_name);
        ollama_close(&m);
        return fail_prefix(err, st, "%s", short_name);
    }
    *out = m;
    return BZ_OK;
}

/* --- verifying --- */

#define CHUNK (1u << 20)

static enum bz_status hash_source(uint8_t digest[32], const struct source *src, void *chunk,
                                  ollama_progress progress, void *ctx, struct bz_err *err)
{
    struct sha256 hash;
    sha256_init(&hash);
    for (uint64_t at = 0; at < src->size;) {
        size_t n = src->size - at < CHUNK ? (size_t)(src->size - at) : CHUNK;
        enum bz_status st = source_read(src, at, chunk, n, err);
        if (st) return st;
        sha256_feed(&hash, chunk, n);
        at += n;
        if (progress && !progress(ctx, at, src->size))
            return fail(err, BZ_ERR_CANCELLED, "%s: verification was cancelled", src->name);
    }
    sha256_end(&hash, digest);
    return BZ_OK;
}

enum bz_status ollama_verify(const struct ollama_layer *l, ollama_progress progress, void *ctx,
                             struct bz_err *err)
{
    struct source src;
    uint8_t digest[32];
    char hex[65];
    enum bz_status st = source_open_file(&src, l->path, err);
    if (st) return st;
    void *chunk = mem_alloc(CHUNK, 1);
    st = chunk ? hash_source(digest, &src, chunk, progress, ctx, err) : fail_memory(err, CHUNK);
    mem_free(chunk);
    source_close(&src);
    if (st) return st;
    sha256_hex(digest, hex);
    if (!ollama_text_same(hex, l->digest))
        return fail(err, BZ_ERR_FORMAT, "%s: the content hashes to %.12s...: the blob is damaged",
                    l->path, hex);
    return BZ_OK;
}
