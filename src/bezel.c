/* bezel.c - the public interface: argument checks, choice of backend, lifetimes.
 *
 * Here are engines, text and adapters, and no paths: what is opened by name is in bezel_file.c.
 * Sessions are in session.c, the texts they make in generate.c.
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "gpu/ops_gpu.h"
#ifndef __wasm__
#include "gpu/null_host.h"
#endif
#include "ops/ops_cpu.h"
#include "ops/ops_optional.h"
#include "text/chat.h"

/* ---- engines ---- */

/* Other adapters or other scales: other numbers. */
static void name_adapters(bz_engine *e)
{
    e->adapted = e->worn = 1;
    for (size_t i = 0; i < e->n_adapters; i++) {
        const struct engine_adapter *a = &e->adapters[i];
        uint32_t scale;
        if (!a->used) continue;
        memcpy(&scale, &a->scale, sizeof scale);
        e->adapted = rng_at(e->adapted ^ a->serial, scale);
        if (a->scale != 0) e->worn = rng_at(e->worn ^ a->digest, scale);
    }
    if (e->worn == WORN_MIXED) e->worn = 1;
}

/* The store's config knows the renderer; a plain file is judged by its name and size. */
static enum bz_chat_variant choose_variant(const struct bz_engine *e, const char *fallback)
{
    char renderer[64] = "";
    struct str name = str_of(fallback);
    if (e->file.from_store)
        snprintf(renderer, sizeof renderer, "%.*s", STR_ARG(e->file.store.config.renderer));
    gguf_get_str(&e->file.gguf, "general.name", &name);
    return chat_variant_for(renderer, name, e->model.n_params) == CHAT_LARGE ? BZ_CHAT_LARGE
                                                                             : BZ_CHAT_SMALL;
}

static enum bz_status open_backend(struct backend *out, const struct bz_engine_options *o,
                                   struct bz_err *err)
{
    switch (o->backend) {
    case BZ_BACKEND_CPU:
    case BZ_BACKEND_REFERENCE: {
        bool fast = o->backend == BZ_BACKEND_CPU;
        enum bz_status st = cpu_open(out, fast, fast ? o->n_threads : 1, err);
        if (st == BZ_OK) out->optional = fast ? &cpu_canvas_fast : &cpu_canvas;
        return st;
    }
    case BZ_BACKEND_GPU:
#ifndef __wasm__
        if (!null_host_is_open()) /* else a plan is made, which needs no device */
            return fail(err, BZ_ERR_UNSUPPORTED,
                        "the GPU is driven by a WebGPU host; this is a native build");
#endif
        return gpu_ops_open(out,
                            o->plain_kernels       ? TIER_PLAIN
                            : o->no_matrix_kernels ? TIER_SUBGROUP
                                                   : TIER_MATRIX,
                            err);
    }
    return fail(err, BZ_ERR_ARGUMENT, "there is no backend number %d", (int)o->backend);
}

/* Copy a manifest's texts as C strings: system prompt, earlier messages, stops. */
static enum bz_status copy_store_texts(struct bz_engine *e, struct bz_err *err)
{
    const struct ollama_model *m = &e->file.store;
    struct buf json = { 0 };
    bool ok = !m->system.p || (e->system = mem_copy_str(m->system.p, m->system.n));
    for (size_t i = 0; i < m->n_messages; i++) {
        buf_puts(&json, i ? ",{\"role\":" : "[{\"role\":");
        json_put_string(&json, m->messages[i].role);
        buf_puts(&json, ",\"content\":");
        json_put_string(&json, m->messages[i].content);
        buf_puts(&json, i + 1 == m->n_messages ? "}]" : "}");
    }
    e->messages = json.data;
    e->stop = mem_alloc(m->params.n_stop, sizeof *e->stop);
    ok = ok && !json.failed && e->stop;
    for (size_t i = 0; ok && i < m->params.n_stop; i++) {
        e->stop[i] = mem_copy_str(m->params.stop[i].p, m->params.stop[i].n);
        ok = e->stop[i] != NULL;
        e->n_stop += ok;
    }
    return ok ? BZ_OK : fail_memory(err, json.n + m->system.n);
}

static enum bz_status fill_engine(struct bz_engine *e, const char *name,
                                  const struct bz_engine_options *o, bool later, struct bz_err *err)
{
    struct str type;
    if (gguf_get_str(&e->file.gguf, "general.type", &type) && str_is(type, "adapter"))
        return fail(err, BZ_ERR_FORMAT, "%s: this is an adapter, not a model",
                    e->file.gguf.sources[0].name);
    enum bz_status st = later ? tokenizer_begin(&e->tokenizer, &e->file.gguf, err)
                              : tokenizer_open(&e->tokenizer, &e->file.gguf, err);
    if (st || o->vocab_only) return st;
    st = open_backend(&e->backend, o, err);
    if (st) return st;
    st = model_load(&e->model, &e->file.gguf, &e->backend, err);
    if (st) return st;
    e->has_model = true;
    e->variant = choose_variant(e, name);
    return copy_store_texts(e, err);
}

enum bz_status engine_open(bz_engine **out, struct located *file, const char *name,
                           const struct bz_engine_options *options, bool later, struct bz_err *err)
{
    struct bz_engine *e = mem_alloc(1, sizeof *e);
    if (!e) {
        locate_close(file);
        return fail_memory(err, sizeof *e);
    }
    e->file = *file;
    name_adapters(e);
    enum bz_status st = fill_engine(e, name, options, later, err);
    if (st) {
        bz_engine_close(e);
        return st;
    }
    *out = e;
    return BZ_OK;
}

void bz_engine_close(bz_engine *e)
{
    if (!e) return;
    for (size_t i = 0; i < e->n_adapters; i++)
        if (e->adapters[i].used) lora_detach(&e->adapters[i].attached, &e->backend);
    mem_free(e->adapters);
    if (e->has_model) model_free(&e->model, &e->backend);
    if (e->backend.close) e->backend.close(&e->backend);
    engine_forget_constraints(e);
    tokenizer_close(e->tokenizer);
    locate_close(&e->file);
    for (size_t i = 0; i < e->n_stop; i++) mem_free(e->stop[i]);
    mem_free(e->stop);
    mem_free(e->messages);
    mem_free(e->system);
    mem_free(e);
}

struct bz_info bz_engine_info(const bz_engine *e)
{
    const struct config *c = &e->model.config;
    return (struct bz_info) {
        .n_layer = c->n_layer,
        .n_embd = c->n_embd,
        .n_vocab = tokenizer_size(e->tokenizer),
        .n_context = c->n_ctx,
        .n_params = e->model.n_params,
        .weight_bytes = e->model.n_bytes,
        .bytes_a_token = e->model.bytes_a_token,
        .n_canvas = c->canvas.n_canvas,
        .chat_variant = e->variant,
        .system = e->system,
        .messages = e->messages,
    };
}

/* ---- text ---- */

void bz_free(void *p)
{
    mem_free(p);
}

/* Hand a list to the caller, or free it after a failure. */
static enum bz_status give_ids(enum bz_status st, struct ids *list, int32_t **ids, size_t *n_ids)
{
    if (st) {
        ids_free(list);
        return st;
    }
    *ids = list->data;
    *n_ids = list->n;
    return BZ_OK;
}

enum bz_status bz_tokenize(const bz_engine *e, const char *text, size_t n_bytes, bool bos,
                           bool plain, int32_t **ids, size_t *n_ids, struct bz_err *err)
{
    struct ids list = { 0 };
    struct tokenize_options o = { .no_bos = !bos, .plain = plain };
    enum bz_status st =
        tokenizer_encode(e->tokenizer, (struct str) { text, n_bytes }, o, &list, err);
    return give_ids(st, &list, ids, n_ids);
}

/* Hand a finished buffer to the caller. */
static enum bz_status give_text(struct buf *b, char **text, size_t *n_bytes, struct bz_err *err)
{
    buf_put(b, "", 0); /* an empty text is still a NUL-ended one */
    if (b->failed) {
        buf_free(b);
        return fail_memory(err, b->n);
    }
    *text = b->data;
    *n_bytes = b->n;
    return BZ_OK;
}

enum bz_status bz_detokenize(const bz_engine *e, const int32_t *ids, size_t n_ids, bool specials,
                             char **text, size_t *n_bytes, struct bz_err *err)
{
    struct buf out = { 0 };
    struct detok d = { 0 };
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= tokenizer_size(e->tokenizer)) {
            buf_free(&out);
            return fail(err, BZ_ERR_ARGUMENT, "token id %d; this vocabulary ends at %u", ids[i],
                        tokenizer_size(e->tokenizer) - 1);
        }
        detok_feed(&d, e->tokenizer, ids[i], specials, &out);
    }
    detok_end(&d, &out);
    return give_text(&out, text, n_bytes, err);
}

static enum bz_status render(struct marked *out, struct str json,
                             const struct bz_chat_options *options, bool *in_thought,
                             struct bz_err *err)
{
    const struct bz_chat_options defaults = { 0 };
    if (!options) options = &defaults;
    struct arena arena = { 0 };
    struct json *root = NULL;
    enum bz_status st = json_parse(&root, json, &arena, err);
    struct chat_options o = {
        .variant = options->variant == BZ_CHAT_LARGE ? CHAT_LARGE : CHAT_SMALL,
        .thinking = options->thinking,
        .no_generation_prompt = options->no_generation_prompt,
        .begun = json_get(root, "begun"),
    };
    if (st == BZ_OK && !json_get(root, "messages"))
        st = fail(err, BZ_ERR_FORMAT, "the conversation has no \"messages\"");
    if (st == BZ_OK)
        st = chat_render(out, json_get(root, "messages"), json_get(root, "tools"), o, in_thought,
                         err);
    arena_free(&arena);
    return st;
}

enum bz_status bz_chat_render(const char *json, size_t n_bytes,
                              const struct bz_chat_options *options, char **prompt, size_t *n_out,
                              struct bz_err *err)
{
    struct marked out = { 0 };
    enum bz_status st = render(&out, (struct str) { json, n_bytes }, options, NULL, err);
    if (st == BZ_OK) st = give_text(&out.text, prompt, n_out, err);
    if (st == BZ_OK) out.text = (struct buf) { 0 }; /* the caller's now */
    marked_free(&out);
    return st;
}

enum bz_status bz_chat_tokenize(const bz_engine *e, const char *json, size_t n_bytes,
                                const struct bz_chat_options *options, int32_t **ids, size_t *n_ids,
                                bool *in_thought, struct bz_err *err)
{
    struct marked prompt = { 0 };
    struct ids list = { 0 };
    enum bz_status st = render(&prompt, (struct str) { json, n_bytes }, options, in_thought, err);
    if (st == BZ_OK) st = tokenizer_encode_marked(e->tokenizer, &prompt, false, &list, err);
    marked_free(&prompt);
    return give_ids(st, &list, ids, n_ids);
}

/* ---- adapters ---- */

enum bz_status engine_add_adapter(bz_engine *e, struct adapter *adapter, float scale, int *id,
                                  struct bz_err *err)
{
    size_t at = 0;
    while (at < e->n_adapters && e->adapters[at].used) at++;
    if (at == e->n_adapters) {
        struct engine_adapter *grown = mem_grow(e->adapters, at + 1, sizeof *grown);
        if (!grown) {
            adapter_close(adapter);
            return fail_memory(err, (at + 1) * sizeof *grown);
        }
        e->adapters = grown;
        e->adapters[at] = (struct engine_adapter) { 0 };
        e->n_adapters++;
    }
    uint64_t digest = adapter_digest(adapter);
    enum bz_status st =
        lora_attach(&e->adapters[at].attached, adapter, scale, &e->model, &e->backend, err);
    if (st) return st;
    e->adapters[at].used = true;
    e->adapters[at].serial = ++e->n_serials;
    e->adapters[at].digest = digest;
    e->adapters[at].scale = scale;
    name_adapters(e);
    *id = (int)at;
    return BZ_OK;
}

static struct engine_adapter *find_adapter(bz_engine *e, int id, struct bz_err *err)
{
    if (id >= 0 && (size_t)id < e->n_adapters && e->adapters[id].used) return &e->adapters[id];
    fail(err, BZ_ERR_NOT_FOUND, "there is no adapter number %d", id);
    return NULL;
}

enum bz_status bz_adapter_scale(bz_engine *e, int id, float scale, struct bz_err *err)
{
    struct engine_adapter *a = find_adapter(e, id, err);
    if (!a) return BZ_ERR_NOT_FOUND;
    lora_set_scale(&a->attached, scale, &e->backend);
    a->scale = scale;
    name_adapters(e);
    return BZ_OK;
}

enum bz_status bz_adapter_remove(bz_engine *e, int id, struct bz_err *err)
{
    struct engine_adapter *a = find_adapter(e, id, err);
    if (!a) return BZ_ERR_NOT_FOUND;
    lora_detach(&a->attached, &e->backend);
    a->used = false;
    name_adapters(e);
    return BZ_OK;
}
