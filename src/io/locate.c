#include "io/locate.h"

#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

/* Open the model layers [first, first + n) as one file. */
static enum bz_status open_layers(struct gguf *out, const struct ollama_manifest *m, size_t first,
                                  uint32_t n, struct bz_err *err)
{
    struct source sources[GGUF_MAX_SHARDS];
    for (uint32_t i = 0; i < n; i++) {
        const struct ollama_layer *l = ollama_layer_at(m, OLLAMA_LAYER_MODEL, first + i);
        enum bz_status st = source_open_file(&sources[i], l->path, err);
        if (st) {
            while (i > 0) source_close(&sources[--i]);
            return st;
        }
    }
    return gguf_open(out, sources, n, err);
}

/* Several model layers are the shards of one model or, in older manifests, a model and its
 * projector; then the layer that is not "clip" is the model. */
static enum bz_status open_store_model(struct gguf *out, const struct ollama_manifest *m,
                                       struct bz_err *err)
{
    uint32_t n = 0;
    while (n < GGUF_MAX_SHARDS && ollama_layer_at(m, OLLAMA_LAYER_MODEL, n)) n++;
    if (n == 0) return fail(err, BZ_ERR_FORMAT, "the model's manifest names no weights");
    enum bz_status st = open_layers(out, m, 0, n, err);
    if (st == BZ_OK || n == 1) return st;
    struct bz_err together = *err;
    for (uint32_t i = 0; i < n; i++) {
        struct gguf g;
        struct str arch;
        if (open_layers(&g, m, i, 1, err)) continue;
        if (gguf_get_str(&g, "general.architecture", &arch) && !str_is(arch, "clip")) {
            *out = g;
            return BZ_OK;
        }
        gguf_close(&g);
    }
    *err = together;
    return st;
}

static enum bz_status open_from_store(struct located *l, const char *model, const char *wish,
                                      struct bz_err *err)
{
    char *root = NULL;
    struct bz_err why;
    enum bz_status st = ollama_find_root(&root, wish, &why);
    if (st)
        return fail(err, BZ_ERR_NOT_FOUND,
                    "%s is not a file, and there is no Ollama store to look in (%.300s)", model,
                    why.text);
    st = ollama_open(&l->store, root, model, err);
    mem_free(root);
    if (st) return st;
    l->from_store = true;
    return open_store_model(&l->gguf, &l->store.manifest, err);
}

enum bz_status locate_open(struct located *out, const char *model, const char *root,
                           struct bz_err *err)
{
    struct located l = { 0 };
    struct stat info;
    /* A name with a slash, a dot in front or the usual ending is meant as a path. Then the error of
     * the file itself is the helpful one. After a colon the ending is a tag's. */
    const char *slash = strrchr(model, '/');
    bool tagged = strchr(slash ? slash : model, ':') != NULL;
    bool is_path = (stat(model, &info) == 0 && S_ISREG(info.st_mode)) || model[0] == '/' ||
                   model[0] == '.' || (!tagged && str_ends(str_of(model), ".gguf"));
    enum bz_status st =
        is_path ? gguf_open_file(&l.gguf, model, err) : open_from_store(&l, model, root, err);
    if (st) {
        locate_close(&l);
        return st;
    }
    *out = l;
    return BZ_OK;
}
