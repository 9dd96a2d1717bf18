/* wasm.c - exports: memory, engines, text, adapters, kernels. Sessions are in wasm_session.c. */
#include "wasm/wasm.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "kernels.h"
#include "wasm/host.h"

/* ---- errors and results ---- */

struct bz_err wasm_err;
enum bz_status wasm_status;

static struct {
    const void *data;
    uint32_t n; /* bytes */
} result;

static void *owned; /* result.data where it must be freed */

bool wasm_failed(enum bz_status st)
{
    wasm_status = st;
    return st != BZ_OK;
}

void wasm_show(const void *data, size_t n)
{
    mem_free(owned);
    owned = NULL;
    result.data = data;
    result.n = (uint32_t)n;
}

void wasm_give(void *data, size_t n)
{
    wasm_show(data, n);
    owned = data;
}

int32_t wasm_give_text(struct buf *b)
{
    if (b->failed) {
        wasm_failed(fail_memory(&wasm_err, b->n));
        buf_free(b);
        return -1;
    }
    wasm_give(b->data, b->n);
    return 0;
}

/* A pointer to { pointer, bytes }. */
EXPORT(const void *, bz_wasm_result, void)
{
    return &result;
}

EXPORT(const char *, bz_wasm_error, void)
{
    return wasm_err.text;
}

/* enum bz_status of the last failure. */
EXPORT(int32_t, bz_wasm_status, void)
{
    return (int32_t)wasm_status;
}

EXPORT(void *, bz_wasm_alloc, uint32_t n)
{
    void *p = mem_alloc(n, 1);
    if (!p) wasm_failed(fail_memory(&wasm_err, n));
    return p;
}

EXPORT(void, bz_wasm_free, void *p)
{
    mem_free(p);
}

/* Allocations not yet freed, for tests. */
EXPORT(int32_t, bz_wasm_live, void)
{
    return (int32_t)mem_live();
}

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

/* {"id": 1, "name": "model.gguf", "size": 123} */
static enum bz_status open_source(struct source *out, const struct json *j)
{
    const struct json *size = json_get(j, "size");
    struct str name = json_get_str(j, "name");
    uint32_t id;
    if (!json_u32(j, "id", &id) || !name.p || !size || size->type != JSON_INT || size->integer < 0)
        return fail(&wasm_err, BZ_ERR_ARGUMENT, "a source needs an id, a name and a size");
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

/* What the store says besides the weights: its texts, as they are in the blobs. */
static enum bz_status read_store(struct ollama_model *m, const struct json *j)
{
    struct str config = json_get_str(j, "config"), params = json_get_str(j, "params");
    struct str system = json_get_str(j, "system"), messages = json_get_str(j, "messages");
    enum bz_status st = BZ_OK;
    if (config.p) st = ollama_parse_config(&m->config, config, &m->arena, &wasm_err);
    if (st == BZ_OK && params.p) st = ollama_parse_params(&m->params, params, &m->arena, &wasm_err);
    if (st == BZ_OK && messages.p)
        st = ollama_parse_messages(&m->messages, &m->n_messages, messages, &m->arena, &wasm_err);
    if (st == BZ_OK && system.p) {
        m->system = (struct str) { arena_copy_str(&m->arena, system.p, system.n), system.n };
        if (!m->system.p) st = fail_memory(&wasm_err, system.n);
    }
    return st;
}

/* ---- engines ---- */

static enum bz_status open_engine(bz_engine **out, const struct json *j)
{
    struct located file = { 0 };
    const struct json *store = json_get(j, "store");
    struct str name = json_get_str(j, "name");
    struct bz_engine_options o = { .vocab_only = json_flag(j, "vocab_only") };
    if (str_eq(json_get_str(j, "backend"), str_of("reference"))) o.backend = BZ_BACKEND_REFERENCE;
    if (str_eq(json_get_str(j, "backend"), str_of("gpu"))) o.backend = BZ_BACKEND_GPU;
    o.plain_kernels = json_flag(j, "plain_kernels");
    enum bz_status st = open_gguf(&file.gguf, json_get(j, "sources"));
    if (st) return st;
    file.from_store = store != NULL;
    if (store) st = read_store(&file.store, store);
    char *copy = mem_copy_str(name.p, name.n);
    if (st == BZ_OK && !copy) st = fail_memory(&wasm_err, name.n);
    if (st == BZ_OK) st = engine_open(out, &file, copy, &o, &wasm_err);
    else locate_close(&file);
    mem_free(copy);
    return st;
}

/* {"name", "sources": [...], "backend": "cpu" | "reference" | "gpu", "vocab_only", "store": {"config",
 * "params", "system", "messages"}}; all but sources may be absent. */
EXPORT(bz_engine *, bz_wasm_engine_open, const char *text, uint32_t n)
{
    struct arena arena = { 0 };
    struct json *j;
    bz_engine *e = NULL;
    enum bz_status st = json_parse(&j, (struct str) { text, n }, &arena, &wasm_err);
    if (st == BZ_OK) st = open_engine(&e, j);
    arena_free(&arena);
    return wasm_failed(st) ? NULL : e;
}

EXPORT(void, bz_wasm_engine_close, bz_engine *e)
{
    bz_engine_close(e);
}

static void put_sampling(struct buf *b, const struct bz_sampling *p)
{
    buf_printf(b, "{\"penalty_window\":%u,\"top_k\":%u,\"seed\":%llu", p->penalty_window, p->top_k,
               (unsigned long long)p->seed);
    const struct {
        const char *name;
        float value;
    } fields[] = {
        { "temperature", p->temperature },
        { "top_p", p->top_p },
        { "min_p", p->min_p },
        { "repeat_penalty", p->repeat_penalty },
        { "presence_penalty", p->presence_penalty },
        { "frequency_penalty", p->frequency_penalty },
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        buf_printf(b, ",\"%s\":", fields[i].name);
        json_put_f32(b, fields[i].value);
    }
    buf_putc(b, '}');
}

/* JSON of struct bz_info and of the sampling defaults. */
EXPORT(int32_t, bz_wasm_engine_info, const bz_engine *e)
{
    struct bz_info i = bz_engine_info(e);
    struct bz_sampling p = bz_sampling_defaults(e);
    struct buf b = { 0 };
    buf_printf(&b, "{\"n_layer\":%u,\"n_embd\":%u,\"n_vocab\":%u,\"n_context\":%u", i.n_layer,
               i.n_embd, i.n_vocab, i.n_context);
    buf_printf(&b, ",\"n_params\":%llu,\"weight_bytes\":%llu,\"bytes_a_token\":%llu",
               (unsigned long long)i.n_params, (unsigned long long)i.weight_bytes,
               (unsigned long long)i.bytes_a_token);
    buf_printf(&b, ",\"chat_variant\":\"%s\",\"system\":",
               i.chat_variant == BZ_CHAT_LARGE ? "large" : "small");
    if (i.system) json_put_string(&b, str_of(i.system));
    else buf_puts(&b, "null");
    buf_printf(&b, ",\"messages\":%s,\"sampling\":", i.messages ? i.messages : "[]");
    put_sampling(&b, &p);
    buf_putc(&b, '}');
    return wasm_give_text(&b);
}

/* ---- text ---- */

/* The result is the ids as i32. */
EXPORT(int32_t, bz_wasm_tokenize, const bz_engine *e, const char *text, uint32_t n, uint32_t bos,
       uint32_t plain)
{
    int32_t *ids;
    size_t n_ids;
    enum bz_status st = bz_tokenize(e, text, n, bos != 0, plain != 0, &ids, &n_ids, &wasm_err);
    if (wasm_failed(st)) return -1;
    wasm_give(ids, n_ids * sizeof *ids);
    return 0;
}

EXPORT(int32_t, bz_wasm_detokenize, const bz_engine *e, const int32_t *ids, uint32_t n,
       uint32_t specials)
{
    char *text;
    size_t n_text;
    enum bz_status st = bz_detokenize(e, ids, n, specials != 0, &text, &n_text, &wasm_err);
    if (wasm_failed(st)) return -1;
    wasm_give(text, n_text);
    return 0;
}

EXPORT(int32_t, bz_wasm_chat_render, const char *json, uint32_t n, uint32_t large,
       uint32_t thinking, uint32_t history)
{
    char *prompt;
    size_t n_prompt;
    struct bz_chat_options o = { .variant = large ? BZ_CHAT_LARGE : BZ_CHAT_SMALL,
                                 .thinking = thinking != 0,
                                 .no_generation_prompt = history != 0 };
    if (wasm_failed(bz_chat_render(json, n, &o, &prompt, &n_prompt, &wasm_err))) return -1;
    wasm_give(prompt, n_prompt);
    return 0;
}

/* ---- adapters ---- */

static enum bz_status open_adapter(struct adapter *out, const struct json *j)
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

/* {"source": {...}, "config": text of adapter_config.json or absent for GGUF, "scale": 1}. The
 * adapter's number, or -1. */
EXPORT(int32_t, bz_wasm_adapter_add, bz_engine *e, const char *text, uint32_t n)
{
    struct arena arena = { 0 };
    struct json *j;
    struct adapter adapter;
    float scale = 1;
    int id = -1;
    enum bz_status st = json_parse(&j, (struct str) { text, n }, &arena, &wasm_err);
    if (st == BZ_OK && !e->has_model)
        st = fail(&wasm_err, BZ_ERR_ARGUMENT, "a vocabulary alone takes no adapters");
    if (st == BZ_OK) st = open_adapter(&adapter, j);
    if (st == BZ_OK) {
        json_f32(j, "scale", &scale);
        st = engine_add_adapter(e, &adapter, scale, &id, &wasm_err);
    }
    arena_free(&arena);
    return wasm_failed(st) ? -1 : id;
}

EXPORT(int32_t, bz_wasm_adapter_scale, bz_engine *e, int32_t id, float scale)
{
    return wasm_failed(bz_adapter_scale(e, id, scale, &wasm_err)) ? -1 : 0;
}

EXPORT(int32_t, bz_wasm_adapter_remove, bz_engine *e, int32_t id)
{
    return wasm_failed(bz_adapter_remove(e, id, &wasm_err)) ? -1 : 0;
}

/* ---- kernels ---- */

/* struct kernel_info number i, or NULL past the last. */
EXPORT(const struct kernel_info *, bz_wasm_kernel, uint32_t i)
{
    return i < N_KERNELS ? &kernel_table[i] : NULL;
}
