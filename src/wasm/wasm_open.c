/* wasm_open.c - options of the exports, and what they open: sources, models, adapters. */
#include "base/mem.h"
#include "wasm/host.h"
#include "wasm/wasm.h"

/* ---- options ---- */

bool json_f32(const struct json *j, const char *key, float *out)
{
    const struct json *m = json_get(j, key);
    if (!m || (m->type != JSON_INT && m->type != JSON_FLOAT)) return false;
    *out = (float)m->number;
    return true;
}

bool json_u32(const struct json *j, const char *key, uint32_t *out)
{
    const struct json *m = json_get(j, key);
    if (!m || m->type != JSON_INT) return false;
    *out = m->integer < 0 ? 0 : m->integer > UINT32_MAX ? UINT32_MAX : (uint32_t)m->integer;
    return true;
}

bool json_flag(const struct json *j, const char *key)
{
    const struct json *m = json_get(j, key);
    return m && m->type == JSON_BOOL && m->boolean;
}

/* ---- sources ---- */

/* One source: {"id": 1, "name": "model.gguf", "size": 123}. With "at" its bytes are in our memory,
 * and are used in place. */
static enum bz_status open_source(struct source *out, const struct json *j)
{
    const struct json *size = json_get(j, "size");
    struct str name = json_get_str(j, "name");
    uint32_t id;
    if (!json_u32(j, "id", &id) || !name.p || !size || size->type != JSON_INT || size->integer < 0)
        return fail(&wasm_err, BZ_ERR_ARGUMENT, "a source needs an id, a name and a size");
    uint32_t at;
    if (json_u32(j, "at", &at)) {
        char *copy = mem_copy_str(name.p, name.n);
        if (!copy) return fail_memory(&wasm_err, name.n + 1);
        enum bz_status st = source_open_memory(out, copy, (const void *)(uintptr_t)at,
                                               (size_t)size->integer, &wasm_err);
        mem_free(copy);
        return st;
    }
    return host_source_open(out, id, name.p, name.n, (uint64_t)size->integer, &wasm_err);
}

static enum bz_status open_gguf(struct gguf *out, const struct json *list)
{
    struct source sources[GGUF_MAX_SHARDS];
    uint32_t n = 0;
    enum bz_status st = BZ_OK;
    if (!list || !list->n || list->n > GGUF_MAX_SHARDS)
        return fail(&wasm_err, BZ_ERR_ARGUMENT, "a model is 1 to %d sources", GGUF_MAX_SHARDS);
    for (const struct json *j = list->child; j && st == BZ_OK; j = j->next) {
        st = open_source(&sources[n], j);
        if (st == BZ_OK) n++;
    }
    if (st == BZ_OK) return gguf_open(out, sources, n, &wasm_err);
    while (n > 0) source_close(&sources[--n]);
    return st;
}

/* Layers as the manifest has them, with the paths of their blobs. */
static enum bz_status read_manifest(struct ollama_model *m, struct str text, struct str root)
{
    enum bz_status st = ollama_parse_manifest(&m->manifest, text, &m->arena, &wasm_err);
    for (size_t i = 0; st == BZ_OK && i < m->manifest.n_layers; i++) {
        struct ollama_layer *l = &m->manifest.layers[i];
        struct buf path = { 0 };
        buf_printf(&path, "%.*s/blobs/sha256-%s", STR_ARG(root), l->digest);
        l->path = path.failed ? NULL : arena_copy_str(&m->arena, path.data, path.n);
        if (!l->path) st = fail_memory(&wasm_err, path.n);
        buf_free(&path);
    }
    return st;
}

/* What the store says besides the weights: its texts, as they are in the blobs. */
static enum bz_status read_store(struct ollama_model *m, const struct json *j)
{
    struct str config = json_get_str(j, "config"), params = json_get_str(j, "params");
    struct str system = json_get_str(j, "system"), messages = json_get_str(j, "messages");
    struct str name = json_get_str(j, "name"), manifest = json_get_str(j, "manifest");
    enum bz_status st = BZ_OK;
    if (name.p) st = ollama_parse_name(&m->name, name, &wasm_err);
    if (st == BZ_OK && manifest.p) st = read_manifest(m, manifest, json_get_str(j, "root"));
    if (st == BZ_OK && config.p) st = ollama_parse_config(&m->config, config, &m->arena, &wasm_err);
    if (st == BZ_OK && params.p) st = ollama_parse_params(&m->params, params, &m->arena, &wasm_err);
    if (st == BZ_OK && messages.p)
        st = ollama_parse_messages(&m->messages, &m->n_messages, messages, &m->arena, &wasm_err);
    if (st == BZ_OK && system.p) {
        m->system = (struct str) { arena_copy_str(&m->arena, system.p, system.n), system.n };
        if (!m->system.p) st = fail_memory(&wasm_err, system.n);
    }
    return st;
}

enum bz_status wasm_open_file(struct located *out, const struct json *j)
{
    struct located file = { 0 };
    const struct json *store = json_get(j, "store");
    enum bz_status st = open_gguf(&file.gguf, json_get(j, "sources"));
    if (st == BZ_OK && store) {
        file.from_store = true;
        st = read_store(&file.store, store);
    }
    if (st) {
        locate_close(&file);
        return st;
    }
    *out = file;
    return BZ_OK;
}

enum bz_status wasm_open_adapter(struct adapter *out, const struct json *j)
{
    struct source src;
    struct gguf g;
    struct str config = json_get_str(j, "config"); /* PEFT's adapter_config.json */
    enum bz_status st = open_source(&src, json_get(j, "source"));
    if (st) return st;
    if (config.p) return adapter_open_peft(out, &src, config, &wasm_err);
    st = gguf_open(&g, &src, 1, &wasm_err);
    if (st) return st;
    st = adapter_open_gguf(out, &g, &wasm_err);
    gguf_close(&g);
    return st;
}
