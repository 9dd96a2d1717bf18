/* wasm_session.c - exports: conversations, and texts generated step by step. Exports for the GPU
 * alone are in wasm_gpu_session.c. */
#include "wasm/wasm_generation.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "wasm/host.h"

/* ---- sessions ---- */

static struct bz_session_options wasm_session_options(uint32_t n_context, uint32_t n_batch,
                                                      uint32_t f16)
{
    return (struct bz_session_options) { .n_context = n_context,
                                         .n_batch = n_batch,
                                         .cache = f16 ? BZ_CACHE_F16 : BZ_CACHE_F32 };
}

EXPORT(bz_session *, bz_wasm_session_open, bz_engine *e, uint32_t n_context, uint32_t n_batch,
       uint32_t f16)
{
    struct bz_session_options o = wasm_session_options(n_context, n_batch, f16);
    bz_session *s;
    return wasm_failed(bz_session_open(&s, e, &o, &wasm_err)) ? NULL : s;
}

EXPORT(void, bz_wasm_session_close, bz_session *s)
{
    bz_session_close(s);
}

EXPORT(double, bz_wasm_session_bytes, const bz_engine *e, uint32_t n_context, uint32_t n_batch,
       uint32_t f16)
{
    struct bz_session_options o = wasm_session_options(n_context, n_batch, f16);
    return (double)bz_session_bytes(e, &o);
}

static bool show_logits(void *ctx, uint32_t position, const float *logits)
{
    (void)ctx;
    return host_logits(position, logits) != 0;
}

EXPORT(int32_t, bz_wasm_session_read, bz_session *s, const int32_t *ids, uint32_t n,
       uint32_t n_logits, uint32_t show)
{
    return wasm_failed(
               bz_session_feed(s, ids, n, n_logits, show ? show_logits : NULL, NULL, &wasm_err))
               ? -1
               : 0;
}

EXPORT(int32_t, bz_wasm_session_set, bz_session *s, const int32_t *ids, uint32_t n)
{
    return wasm_failed(bz_session_set(s, ids, n, &wasm_err)) ? -1 : 0;
}

EXPORT(int32_t, bz_wasm_session_keep, bz_session *s, const int32_t *ids, uint32_t n)
{
    uint32_t kept = 0;
    return wasm_failed(session_keep(s, ids, n, &kept, &wasm_err)) ? -1 : (int32_t)kept;
}

EXPORT(int32_t, bz_wasm_session_truncate, bz_session *s, uint32_t n)
{
    uint32_t kept = 0;
    return wasm_failed(bz_session_truncate(s, n, &kept, &wasm_err)) ? -1 : (int32_t)kept;
}

EXPORT(void, bz_wasm_session_tokens, const bz_session *s)
{
    size_t n;
    const int32_t *tokens = bz_session_tokens(s, &n);
    wasm_show(tokens, n * sizeof *tokens);
}

EXPORT(double, bz_wasm_session_cache_bytes, const bz_session *s)
{
    return (double)kv_bytes(&s->engine->model.config, s->kv.n_ctx, s->n_batch, s->kv.half);
}

EXPORT(uint32_t, bz_wasm_session_context, const bz_session *s)
{
    return s->kv.n_ctx;
}

EXPORT(uint32_t, bz_wasm_session_length, const bz_session *s)
{
    return s->kv.n_past;
}

EXPORT(const float *, bz_wasm_session_logits, const bz_session *s)
{
    return bz_session_logits(s);
}

EXPORT(int32_t, bz_wasm_session_save, bz_session *s)
{
    void *data;
    size_t n;
    if (wasm_failed(bz_session_save(s, &data, &n, &wasm_err))) return -1;
    wasm_give(data, n);
    return 0;
}

EXPORT(int32_t, bz_wasm_session_restore, bz_session *s, uint32_t source, double n)
{
    struct source snap;
    enum bz_status st =
        host_source_open(&snap, source, "session snapshot", 16, (uint64_t)n, &wasm_err);
    if (st == BZ_OK) {
        st = session_restore(s, &snap, &wasm_err);
        source_close(&snap);
    }
    return wasm_failed(st) ? -1 : 0;
}

/* ---- constraints ---- */

EXPORT(int32_t, bz_wasm_constraint_check, bz_engine *e, const char *json, uint32_t n)
{
    bz_constraint *c;
    if (wasm_failed(bz_constraint_open(&c, e, json, n, &wasm_err))) return -1;
    bz_constraint_close(c);
    return 0;
}

/* ---- generating ---- */

/* "bias": [[id, number], ...], where null forbids the token. */
static enum bz_status read_bias(struct bz_sampling *p, const struct json *list, struct arena *a)
{
    if (!list) return BZ_OK;
    struct bz_bias *bias = arena_alloc(a, list->n, sizeof *bias);
    if (!bias) return fail_memory(&wasm_err, list->n * sizeof *bias);
    for (const struct json *j = list->child; j; j = j->next) {
        const struct json *id = json_at(j, 0), *add = json_at(j, 1);
        bool number = add && (add->type == JSON_INT || add->type == JSON_FLOAT);
        if (!id || id->type != JSON_INT || id->integer < 0 || id->integer > INT32_MAX ||
            !(number || (add && add->type == JSON_NULL)))
            return fail(&wasm_err, BZ_ERR_ARGUMENT, "a bias is [token id, number or null]");
        bias[p->n_bias++] =
            (struct bz_bias) { (int32_t)id->integer, number ? (float)add->number : -INFINITY };
    }
    p->bias = bias;
    return BZ_OK;
}

/* What `j` says replaces the engine's defaults. */
static enum bz_status read_sampling(struct bz_sampling *p, const struct json *j, struct arena *a)
{
    const struct json *seed = json_get(j, "seed");
    json_f32(j, "temperature", &p->temperature);
    json_f32(j, "top_p", &p->top_p);
    json_f32(j, "min_p", &p->min_p);
    json_f32(j, "repeat_penalty", &p->repeat_penalty);
    json_f32(j, "presence_penalty", &p->presence_penalty);
    json_f32(j, "frequency_penalty", &p->frequency_penalty);
    json_u32(j, "top_k", &p->top_k);
    json_u32(j, "penalty_window", &p->penalty_window);
    if (seed && seed->type == JSON_INT) p->seed = (uint64_t)seed->integer; /* past 2^63: negative */
    return read_bias(p, json_get(j, "bias"), a);
}

static enum bz_status read_stops(struct bz_generate_options *o, const struct json *list,
                                 struct arena *a)
{
    if (!list) return BZ_OK;
    const char **stop = arena_alloc(a, list->n, sizeof *stop);
    if (!stop) return fail_memory(&wasm_err, list->n * sizeof *stop);
    o->n_stop = 0; /* they replace the store's */
    for (const struct json *j = list->child; j; j = j->next) {
        if (j->type != JSON_STRING)
            return fail(&wasm_err, BZ_ERR_ARGUMENT, "\"stop\" is a list of strings");
        stop[o->n_stop] = arena_copy_str(a, j->text.p, j->text.n);
        if (!stop[o->n_stop++]) return fail_memory(&wasm_err, j->text.n);
    }
    o->stop = stop;
    return BZ_OK;
}

enum bz_status wasm_read_options(struct bz_generate_options *o, struct str *constraint,
                                 const bz_engine *e, struct str text, struct arena *a)
{
    struct json *j;
    enum bz_status st = json_parse(&j, text, a, &wasm_err);
    if (st) return st;
    *constraint = json_get_str(j, "constraint");
    o->one_by_one = json_flag(j, "one_by_one");
    json_u32(j, "n_max", &o->n_max);
    o->ignore_end = json_flag(j, "ignore_end");
    o->specials = json_flag(j, "specials");
    st = read_stops(o, json_get(j, "stop"), a);
    if (st == BZ_OK) st = read_sampling(&o->sampling, j, a);
    return st ? st : wasm_read_diffusion(o, e, j, a);
}

EXPORT(void, bz_wasm_generation_close, struct wasm_generation *w)
{
    if (!w) return;
    generation_close(&w->g);
    bz_constraint_close(w->options.constraint);
    arena_free(&w->arena);
    mem_free(w->mask);
    mem_free(w);
}

static enum bz_status begin(struct wasm_generation *w, struct str text)
{
    bz_engine *e = w->session->engine;
    struct str constraint;
    w->options = bz_generate_defaults(e);
    enum bz_status st = wasm_read_options(&w->options, &constraint, e, text, &w->arena);
    if (st == BZ_OK && constraint.p)
        st = bz_constraint_open(&w->options.constraint, e, constraint.p, constraint.n, &wasm_err);
    if (st == BZ_OK) st = generation_begin(&w->g, w->session, &w->options, &wasm_err);
    if (st || !w->options.constraint) return st;
    uint32_t n = vocab_mask_words(e->vocab);
    w->mask = mem_alloc(n, sizeof *w->mask);
    return w->mask ? BZ_OK : fail_memory(&wasm_err, n * sizeof *w->mask);
}

EXPORT(struct wasm_generation *, bz_wasm_generation_open, bz_session *s, const char *text,
       uint32_t n)
{
    struct wasm_generation *w = mem_alloc(1, sizeof *w);
    if (!w) {
        wasm_failed(fail_memory(&wasm_err, sizeof *w));
        return NULL;
    }
    w->session = s;
    if (!wasm_failed(begin(w, (struct str) { text, n }))) return w;
    bz_wasm_generation_close(w);
    return NULL;
}

EXPORT(int32_t, bz_wasm_generation_resume, struct wasm_generation *w, uint32_t n)
{
    if (wasm_failed(generation_resume(&w->g, w->session, n, &wasm_err))) return -1;
    return w->g.done;
}

EXPORT(int32_t, bz_wasm_generation_next, struct wasm_generation *w)
{
    if (w->g.done) return 1;
    if (wasm_failed(generation_next(&w->g, w->session, &wasm_err))) return -1;
    wasm_show(w->g.ready.data, w->g.ready.n);
    return w->g.done ? 1 : 0;
}

EXPORT(int32_t, bz_wasm_generation_has_room, struct wasm_generation *w)
{
    return generation_has_room(&w->g, w->session);
}

/* Keep what the look found; was it something else before? */
static bool found_others(struct wasm_generation *w, const uint32_t *found)
{
    uint32_t n = vocab_mask_words(w->session->engine->vocab), same = 0;
    if (!found) { /* all: as a mask */
        memset(w->g.mask, 0xff, n * sizeof *found);
        found = w->g.mask;
    }
    while (w->n_mask && same < n && found[same] == w->mask[same]) same++;
    w->n_mask = n;
    memcpy(w->mask + same, found + same, (n - same) * sizeof *found);
    return same < n;
}

EXPORT(int32_t, bz_wasm_generation_look, struct wasm_generation *w)
{
    const struct next_tokens *next = &w->g.next;
    if (!w->mask) return NEXT_SAME;
    if (wasm_failed(generation_look(&w->g, w->session, &wasm_err))) return -1;
    wasm_show(next->forced, next->n_forced * sizeof *next->forced);
    if (next->n_forced) return NEXT_FORCED;
    return found_others(w, next->mask) ? NEXT_OTHERS : NEXT_SAME;
}

EXPORT(int32_t, bz_wasm_generation_advance, struct wasm_generation *w, int32_t id)
{
    w->g.ready.n = 0;
    if (wasm_failed(generation_advance(&w->g, w->session, id, &wasm_err))) return -1;
    wasm_show(w->g.ready.data, w->g.ready.n);
    return w->g.done ? 1 : 0;
}

EXPORT(uint32_t, bz_wasm_generation_stop, const struct wasm_generation *w)
{
    return (uint32_t)w->g.result.stop;
}

EXPORT(void, bz_wasm_generation_ends, const struct wasm_generation *w)
{
    wasm_show(w->g.ends, w->g.n_ends * sizeof *w->g.ends);
}

EXPORT(uint32_t, bz_wasm_generation_first, const struct wasm_generation *w)
{
    return (uint32_t)w->g.result.first;
}

EXPORT(uint32_t, bz_wasm_generation_count, const struct wasm_generation *w)
{
    return (uint32_t)w->g.result.n;
}

EXPORT(int32_t, bz_wasm_session_sample, bz_session *s, const char *text, uint32_t n)
{
    struct arena arena = { 0 };
    struct bz_generate_options o = bz_generate_defaults(s->engine);
    struct str constraint; /* of a text: one draw alone has none */
    int32_t id = -1;
    enum bz_status st =
        wasm_read_options(&o, &constraint, s->engine, (struct str) { text, n }, &arena);
    if (st == BZ_OK) st = bz_session_sample(s, &o.sampling, &id, &wasm_err);
    arena_free(&arena);
    return wasm_failed(st) ? -1 : id;
}
