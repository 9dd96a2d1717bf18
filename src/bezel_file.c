/* bezel_file.c - the part of the public interface that names files: models by path or by their name
 * in the Ollama store, adapters by path. A host without files leaves this file out. */
#include "engine.h"

/* Adapter layers of the manifest, with scale 1. */
static enum bz_status add_store_adapters(bz_engine *e, struct bz_err *err)
{
    if (!e->has_model || !e->file.from_store) return BZ_OK;
    for (size_t i = 0;; i++) {
        const struct ollama_layer *l =
            ollama_layer_at(&e->file.store.manifest, OLLAMA_LAYER_ADAPTER, i);
        int id;
        if (!l) return BZ_OK;
        enum bz_status st = bz_adapter_add(e, l->path, 1, &id, err);
        if (st) return st;
    }
}

enum bz_status bz_engine_open(bz_engine **out, const char *model,
                              const struct bz_engine_options *options, struct bz_err *err)
{
    const struct bz_engine_options defaults = { 0 };
    if (!options) options = &defaults;
    if (!out || !model || !*model) return fail(err, BZ_ERR_ARGUMENT, "no model was named");
    struct located file;
    bz_engine *e;
    enum bz_status st = locate_open(&file, model, options->store, err);
    if (st == BZ_OK) st = engine_open(&e, &file, model, options, false, err);
    if (st) return st;
    st = add_store_adapters(e, err);
    if (st) {
        bz_engine_close(e);
        return st;
    }
    *out = e;
    return BZ_OK;
}

enum bz_status bz_adapter_add(bz_engine *e, const char *path, float scale, int *id,
                              struct bz_err *err)
{
    if (!e->has_model) return fail(err, BZ_ERR_ARGUMENT, "a vocabulary alone takes no adapters");
    struct adapter adapter;
    enum bz_status st = adapter_open_file(&adapter, path, err);
    if (st) return st;
    st = engine_add_adapter(e, &adapter, scale, id, err);
    return st && st != BZ_ERR_MEMORY ? fail_prefix(err, st, "%s", path) : st;
}
