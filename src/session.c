/* session.c - conversations: feeding tokens, drawing the next one, generating text.
 *
 * A session never holds half a step: when feeding fails, the cache is cut back to where it was.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "engine.h"
#include "text/stop.h"

enum { DEFAULT_CONTEXT = 4096, DEFAULT_BATCH = 256 };

/* ---- open and close ---- */

static struct bz_session_options fill_in(const struct bz_engine *e,
                                         const struct bz_session_options *options)
{
    struct bz_session_options o = { 0 };
    if (options) o = *options;
    uint32_t trained = e->model.config.n_ctx;
    if (!o.n_context) o.n_context = trained < DEFAULT_CONTEXT ? trained : DEFAULT_CONTEXT;
    if (!o.n_batch) o.n_batch = DEFAULT_BATCH;
    if (o.n_batch > o.n_context) o.n_batch = o.n_context;
    return o;
}

uint64_t bz_session_bytes(const bz_engine *e, const struct bz_session_options *options)
{
    struct bz_session_options o = fill_in(e, options);
    return kv_bytes(&e->model.config, o.n_context, o.n_batch) + acts_bytes(&e->model, o.n_batch) +
           16 * (uint64_t)e->model.config.n_vocab;
}

enum bz_status bz_session_open(bz_session **out, bz_engine *e,
                               const struct bz_session_options *options, struct bz_err *err)
{
    if (!e->has_model) return fail(err, BZ_ERR_ARGUMENT, "a vocabulary alone cannot compute");
    struct bz_session_options o = fill_in(e, options);
    if (o.n_context > e->model.config.n_ctx)
        return fail(err, BZ_ERR_LIMIT, "a context of %u tokens; this model was trained for %u",
                    o.n_context, e->model.config.n_ctx);
    struct bz_session *s = mem_alloc(1, sizeof *s);
    if (!s) return fail_memory(err, sizeof *s);
    s->engine = e;
    s->n_batch = o.n_batch;
    s->tokens = mem_alloc(o.n_context, sizeof *s->tokens);
    s->logits = mem_alloc(e->model.config.n_vocab, sizeof *s->logits);
    enum bz_status st = s->tokens && s->logits ? BZ_OK : fail_memory(err, o.n_context * 4ull);
    if (st == BZ_OK)
        st = kv_open(&s->kv, &e->model.config, &e->backend, o.n_context, o.n_batch, err);
    if (st == BZ_OK) st = acts_open(&s->acts, &e->model, &e->backend, o.n_batch, err);
    if (st == BZ_OK) st = sampler_open(&s->sampler, e->model.config.n_vocab, err);
    if (st) {
        bz_session_close(s);
        return st;
    }
    *out = s;
    return BZ_OK;
}

void bz_session_close(bz_session *s)
{
    if (!s) return;
    if (s->kv.be) kv_close(&s->kv);
    acts_close(&s->acts, &s->engine->model, &s->engine->backend);
    sampler_close(&s->sampler);
    mem_free(s->tokens);
    mem_free(s->logits);
    mem_free(s);
}

/* ---- feeding tokens ---- */

static enum bz_status check_ids(const struct bz_session *s, const int32_t *ids, size_t n,
                                struct bz_err *err)
{
    uint32_t n_vocab = s->engine->model.config.n_vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= n_vocab)
            return fail(err, BZ_ERR_ARGUMENT, "token id %d; this vocabulary ends at %u", ids[i],
                        n_vocab - 1);
    if (n > s->kv.n_ctx - s->kv.n_past)
        return fail(err, BZ_ERR_LIMIT, "%zu tokens do not fit: %u of the context's %u are used", n,
                    s->kv.n_past, s->kv.n_ctx);
    return BZ_OK;
}

/* Logits of the n rows in acts.result, a few at a time; `pos` is the first one's position. */
static bool hand_out_logits(struct bz_session *s, struct run *r, uint32_t pos, uint32_t n,
                            bz_logits_fn on_logits, void *ctx)
{
    for (uint32_t at = 0; at < n; at += LOGIT_ROWS) {
        uint32_t rows = n - at < LOGIT_ROWS ? n - at : LOGIT_ROWS;
        model_logits(r, &s->engine->model, &s->acts, at, rows);
        for (uint32_t i = 0; i < rows; i++) {
            op_read(r, &s->acts.logits, i, s->logits, 1);
            if (r->status) return true;
            if (on_logits && !on_logits(ctx, pos + at + i, s->logits)) return false;
        }
    }
    return true;
}

static enum bz_status feed(struct bz_session *s, const int32_t *ids, size_t n, size_t n_logits,
                           bz_logits_fn on_logits, void *ctx, struct run *r, struct bz_err *err)
{
    for (size_t at = 0; at < n;) {
        uint32_t rows = n - at < s->n_batch ? (uint32_t)(n - at) : s->n_batch;
        size_t left = n - at - rows; /* tokens after this batch */
        uint32_t wanted = n_logits > left ? (uint32_t)(n_logits - left) : 0;
        if (wanted > rows) wanted = rows;
        s->acts.ids.rows = rows;
        op_write(r, &s->acts.ids, 0, ids + at, rows);
        model_forward(r, &s->engine->model, &s->kv, &s->acts, wanted);
        bool go_on = hand_out_logits(s, r, s->kv.n_past + rows - wanted, wanted, on_logits, ctx);
        if (r->status) return fail(err, r->status, "%s", r->err.text);
        memcpy(s->tokens + s->kv.n_past, ids + at, rows * sizeof *ids);
        kv_advance(&s->kv, rows);
        if (!go_on) return fail(err, BZ_ERR_CANCELLED, "stopped on request");
        at += rows;
    }
    s->has_logits = n_logits > 0;
    return BZ_OK;
}

enum bz_status bz_session_feed(bz_session *s, const int32_t *ids, size_t n, size_t n_logits,
                               bz_logits_fn on_logits, void *ctx, struct bz_err *err)
{
    if (n == 0) return BZ_OK;
    if (n_logits > n) n_logits = n;
    enum bz_status st = check_ids(s, ids, n, err);
    if (st) return st;
    struct run r = { .be = &s->engine->backend };
    uint32_t before = s->kv.n_past;
    st = feed(s, ids, n, n_logits, on_logits, ctx, &r, err);
    if (st) {
        kv_truncate(&s->kv, before);
        s->has_logits = false;
    }
    return st;
}

enum bz_status bz_session_feed_text(bz_session *s, const char *text, struct bz_err *err)
{
    int32_t *ids;
    size_t n;
    enum bz_status st =
        bz_tokenize(s->engine, text, strlen(text), s->kv.n_past == 0, false, &ids, &n, err);
    if (st) return st;
    st = bz_session_feed(s, ids, n, 1, NULL, NULL, err);
    bz_free(ids);
    return st;
}

enum bz_status bz_session_set(bz_session *s, const int32_t *ids, size_t n, struct bz_err *err)
{
    if (n == 0) return fail(err, BZ_ERR_ARGUMENT, "a session needs at least one token");
    size_t same = 0;
    while (same < n && same < s->kv.n_past && ids[same] == s->tokens[same]) same++;
    if (same == n && same == s->kv.n_past && s->has_logits) return BZ_OK;
    if (same == n) same--; /* its last token is fed again, for the logits */
    uint32_t kept = kv_truncate(&s->kv, (uint32_t)same);
    s->has_logits = false;
    return bz_session_feed(s, ids + kept, n - kept, 1, NULL, NULL, err);
}

enum bz_status bz_session_truncate(bz_session *s, uint32_t n, uint32_t *kept, struct bz_err *err)
{
    if (n > s->kv.n_past)
        return fail(err, BZ_ERR_ARGUMENT, "cannot keep %u tokens of %u", n, s->kv.n_past);
    if (n < s->kv.n_past) s->has_logits = false;
    uint32_t left = kv_truncate(&s->kv, n);
    if (kept) *kept = left;
    return BZ_OK;
}

const int32_t *bz_session_tokens(const bz_session *s, size_t *n)
{
    if (n) *n = s->kv.n_past;
    return s->tokens;
}

const float *bz_session_logits(const bz_session *s)
{
    return s->has_logits ? s->logits : NULL;
}

/* ---- snapshots ---- */

enum bz_status bz_session_save(bz_session *s, void **data, size_t *n_bytes, struct bz_err *err)
{
    struct run r = { .be = &s->engine->backend };
    struct buf out = { 0 };
    kv_save(&r, &s->kv, s->engine->model.fingerprint, s->tokens, &out);
    if (out.failed || r.status) {
        size_t n = out.n;
        buf_free(&out);
        return r.status ? fail(err, r.status, "%s", r.err.text) : fail_memory(err, n);
    }
    *data = out.data;
    *n_bytes = out.n;
    return BZ_OK;
}

enum bz_status bz_session_restore(bz_session *s, const void *data, size_t n_bytes,
                                  struct bz_err *err)
{
    struct run r = { .be = &s->engine->backend };
    s->has_logits = false;
    enum bz_status st = kv_restore(&r, &s->kv, s->engine->model.fingerprint,
                                   (struct str) { data, n_bytes }, s->tokens, err);
    return st;
}

/* ---- choosing and generating ---- */

struct bz_sampling bz_sampling_defaults(const bz_engine *e)
{
    struct bz_sampling p = {
        .penalty_window = 64, .repeat_penalty = 1, .temperature = 1, .top_k = 64, .top_p = 0.95f
    };
    const struct gguf *g = &e->file.gguf;
    double f;
    uint64_t u;
    if (gguf_get_f64(g, "general.sampling.temp", &f)) p.temperature = (float)f;
    if (gguf_get_f64(g, "general.sampling.top_p", &f)) p.top_p = (float)f;
    if (gguf_get_u64(g, "general.sampling.top_k", &u) && u <= UINT32_MAX) p.top_k = (uint32_t)u;
    if (!e->file.from_store) return p;
    const struct ollama_params *o = &e->file.store.params;
    if (o->temperature.set) p.temperature = (float)o->temperature.v;
    if (o->top_p.set) p.top_p = (float)o->top_p.v;
    if (o->min_p.set) p.min_p = (float)o->min_p.v;
    if (o->top_k.set) p.top_k = o->top_k.v > 0 ? (uint32_t)o->top_k.v : 0;
    if (o->repeat_penalty.set) p.repeat_penalty = (float)o->repeat_penalty.v;
    if (o->presence_penalty.set) p.presence_penalty = (float)o->presence_penalty.v;
    if (o->frequency_penalty.set) p.frequency_penalty = (float)o->frequency_penalty.v;
    if (o->repeat_last_n.set) /* Ollama's -1 means the whole context */
        p.penalty_window = o->repeat_last_n.v < 0 ? UINT32_MAX : (uint32_t)o->repeat_last_n.v;
    if (o->seed.set && o->seed.v >= 0) p.seed = (uint64_t)o->seed.v;
    return p;
}

static enum bz_status check_sampling(const struct bz_sampling *p, struct bz_err *err)
{
    if (!(p->temperature >= 0))
        return fail(err, BZ_ERR_ARGUMENT, "temperature %g; it must be 0 or more",
                    (double)p->temperature);
    if (!(p->top_p > 0))
        return fail(err, BZ_ERR_ARGUMENT, "top-p %g; it must be above 0", (double)p->top_p);
    if (!(p->repeat_penalty > 0))
        return fail(err, BZ_ERR_ARGUMENT, "repeat penalty %g; it must be above 0",
                    (double)p->repeat_penalty);
    if (!(p->min_p >= 0 && p->min_p <= 1))
        return fail(err, BZ_ERR_ARGUMENT, "min-p %g; it must be between 0 and 1", (double)p->min_p);
    return BZ_OK;
}

enum bz_status bz_session_sample(bz_session *s, const struct bz_sampling *sampling, int32_t *id,
                                 struct bz_err *err)
{
    if (!s->has_logits)
        return fail(err, BZ_ERR_ARGUMENT, "feed at least one token before drawing the next");
    enum bz_status st = check_sampling(sampling, err);
    if (st) return st;
    size_t n_suppress;
    const int32_t *suppress = tokenizer_suppressed(s->engine->tokenizer, &n_suppress);
    /* The position numbers the draw: a branch of a conversation draws like the original. */
    return sampler_draw(&s->sampler, sampling, s->logits, s->tokens, s->kv.n_past, suppress,
                        n_suppress, s->kv.n_past, id, err);
}

struct bz_generate_options bz_generate_defaults(const bz_engine *e)
{
    return (struct bz_generate_options) { .sampling = bz_sampling_defaults(e) };
}

/* The text side of a generation: ids become pieces for the caller. */
struct writer {
    const struct bz_generate_options *o;
    const struct tokenizer *tokenizer;
    struct detok detok;
    struct stop_filter stop;
    struct buf text, ready;
};

/* Deliver what is ready. False when the caller wants to stop. */
static bool deliver(struct writer *w)
{
    bool go_on = true;
    if (w->o->on_text && w->ready.n) go_on = w->o->on_text(w->o->ctx, w->ready.data, w->ready.n);
    w->ready.n = 0;
    return go_on;
}

/* One more token. Returns whether to go on; *why says why not. */
static bool write_token(struct writer *w, int32_t id, enum bz_stop *why)
{
    w->text.n = 0;
    detok_feed(&w->detok, w->tokenizer, id, w->o->specials, &w->text);
    bool met = stop_feed(&w->stop, buf_str(&w->text), &w->ready);
    if (met) *why = BZ_STOP_STRING;
    bool go_on = deliver(w);
    if (!go_on) *why = BZ_STOP_CANCELLED;
    return go_on && !met;
}

/* The end of the stream: what was held back comes out. */
static void write_end(struct writer *w)
{
    w->text.n = 0;
    detok_end(&w->detok, &w->text);
    stop_feed(&w->stop, buf_str(&w->text), &w->ready);
    stop_end(&w->stop, &w->ready);
    deliver(w);
}

static enum bz_status generate(struct bz_session *s, struct writer *w, struct bz_generated *g,
                               struct bz_err *err)
{
    const struct bz_generate_options *o = w->o;
    bool go_on = true;
    while (go_on) {
        int32_t id;
        g->stop = BZ_STOP_LENGTH;
        if (o->n_max && g->n == o->n_max) break;
        g->stop = BZ_STOP_CONTEXT;
        if (s->kv.n_past == s->kv.n_ctx) break;
        enum bz_status st = bz_session_sample(s, &o->sampling, &id, err);
        if (st) return st;
        bool end = !o->ignore_end && tokenizer_is_end(w->tokenizer, id);
        st = bz_session_feed(s, &id, 1, end ? 0 : 1, NULL, NULL, err);
        if (st) return st;
        g->n++;
        if (end) {
            g->stop = BZ_STOP_END;
            break;
        }
        go_on = write_token(w, id, &g->stop);
        if (w->ready.failed || w->text.failed) return fail_memory(err, w->text.n);
    }
    if (g->stop != BZ_STOP_CANCELLED) write_end(w);
    return BZ_OK;
}

enum bz_status bz_generate(bz_session *s, const struct bz_generate_options *options,
                           struct bz_generated *result, struct bz_err *err)
{
    struct bz_generate_options defaults = bz_generate_defaults(s->engine);
    if (!options) options = &defaults;
    struct writer w = { .o = options, .tokenizer = s->engine->tokenizer };
    w.stop.strings = options->stop;
    w.stop.n_strings = options->n_stop;
    struct bz_generated g = { .first = s->kv.n_past };
    enum bz_status st = generate(s, &w, &g, err);
    stop_free(&w.stop);
    buf_free(&w.text);
    buf_free(&w.ready);
    if (result) *result = g;
    return st;
}
