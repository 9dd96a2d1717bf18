/* wasm.c - exports: memory, engines, text, adapters, kernels. Sessions are in wasm_session.c. */
#include "wasm/wasm.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "gpu/kernel.h"

/* ---- errors and results ---- */

struct bz_err wasm_err;
enum bz_status wasm_status;

static struct host_result result;

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
    result.n_bytes = (uint32_t)n;
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

EXPORT(const void *, bz_wasm_result, void)
{
    return &result;
}

EXPORT(const char *, bz_wasm_error, void)
{
    return wasm_err.text;
}

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

EXPORT(int32_t, bz_wasm_live, void)
{
    return (int32_t)mem_live();
}

/* ---- engines ---- */

static enum bz_status open_engine(bz_engine **out, const struct json *j)
{
    struct located file;
    struct str name = json_get_str(j, "name");
    struct bz_engine_options o = { .vocab_only = json_flag(j, "vocab_only") };
    if (str_eq(json_get_str(j, "backend"), str_of("reference"))) o.backend = BZ_BACKEND_REFERENCE;
    if (str_eq(json_get_str(j, "backend"), str_of("gpu"))) o.backend = BZ_BACKEND_GPU;
    o.plain_kernels = json_flag(j, "plain_kernels");
    o.no_matrix_kernels = json_flag(j, "no_matrix_kernels");
    enum bz_status st = wasm_open_file(&file, j);
    if (st) return st;
    char *copy = mem_copy_str(name.p, name.n);
    if (st == BZ_OK && !copy) st = fail_memory(&wasm_err, name.n);
    if (st == BZ_OK) st = engine_open(out, &file, copy, &o, json_flag(j, "later"), &wasm_err);
    else locate_close(&file);
    mem_free(copy);
    return st;
}

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

EXPORT(int32_t, bz_wasm_engine_read_on, bz_engine *e)
{
    enum { AT_ONCE = 4096 }; /* tokens or merges: a millisecond, since windows wait */
    bool more;
    return wasm_failed(tokenizer_read_on(e->tokenizer, AT_ONCE, &more, &wasm_err)) ? -1 : more;
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

static void put_diffusion(struct buf *b, struct bz_diffusion d)
{
    buf_printf(b, ",\"diffusion\":{\"steps\":%u,\"stability\":%u,\"t_min\":%.9g,\"t_max\":%.9g",
               d.n_steps, d.n_stable, (double)d.t_min, (double)d.t_max);
    buf_printf(b, ",\"entropy_bound\":%.9g,\"confidence\":%.9g}", (double)d.entropy_bound,
               (double)d.confidence);
}

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
    buf_printf(&b, ",\"messages\":%s,\"stop\":[", i.messages ? i.messages : "[]");
    for (size_t k = 0; k < e->n_stop; k++) {
        if (k) buf_putc(&b, ',');
        json_put_string(&b, str_of(e->stop[k]));
    }
    buf_puts(&b, "],\"sampling\":");
    put_sampling(&b, &p);
    buf_printf(&b, ",\"n_canvas\":%u", i.n_canvas);
    if (i.n_canvas) put_diffusion(&b, bz_diffusion_defaults(e));
    buf_putc(&b, '}');
    return wasm_give_text(&b);
}

/* ---- text ---- */

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

EXPORT(int32_t, bz_wasm_ends, const bz_engine *e)
{
    struct buf b = { 0 };
    for (int32_t id = 0; id < (int32_t)bz_engine_info(e).n_vocab; id++)
        if (tokenizer_is_end(e->tokenizer, id)) buf_put(&b, &id, sizeof id);
    return wasm_give_text(&b);
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

EXPORT(int32_t, bz_wasm_chat_tokenize, const bz_engine *e, const char *json, uint32_t n,
       uint32_t thinking, uint32_t history)
{
    int32_t *ids;
    size_t n_ids;
    bool in_thought;
    struct bz_chat_options o = { .variant = bz_engine_info(e).chat_variant,
                                 .thinking = thinking != 0,
                                 .no_generation_prompt = history != 0 };
    enum bz_status st = bz_chat_tokenize(e, json, n, &o, &ids, &n_ids, &in_thought, &wasm_err);
    if (wasm_failed(st)) return -1;
    wasm_give(ids, n_ids * sizeof *ids);
    return in_thought;
}

/* ---- adapters ---- */

EXPORT(double, bz_wasm_adapted, const bz_engine *e)
{
    return (double)((e->adapted ^ e->n_trainings * 0x9e3779b97f4a7c15u) >> 11);
}

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
    if (st == BZ_OK) st = wasm_open_adapter(&adapter, j);
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

EXPORT(int32_t, bz_wasm_kernel, uint32_t number)
{
    struct wgsl kernel;
    struct buf b = { 0 };
    bool failed = wasm_failed(kernel_expand(&kernel, number, &wasm_err));
    if (!failed) {
        const struct kernel_family *f = kernel_family(number);
        buf_printf(&b, "%s\n%s\n", kernel.name.data, kernel.bindings);
        for (uint32_t i = 0; i < f->n_overrides; i++)
            buf_printf(&b, i ? " %s" : "%s", f->overrides[i]);
        buf_putc(&b, '\n');
        buf_put_str(&b, buf_str(&kernel.text));
    }
    wgsl_free(&kernel);
    return failed || wasm_give_text(&b) < 0 ? -1 : kernel_family(number)->params_bytes;
}

EXPORT(int32_t, bz_wasm_kernels_bring, const char *text, uint32_t n)
{
    return wasm_failed(kernel_bring(text, n, &wasm_err)) ? -1 : 0;
}

EXPORT(uint32_t, bz_wasm_kernel_bandwidth, void)
{
    return KERNEL_BANDWIDTH;
}
