/* session.c - conversations: reading tokens, stepping back, snapshots. Drawing the next token and
 * generating text are in generate.c.
 *
 * A session never holds half a step: when reading fails, the cache is cut back to where it was.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "engine.h"

enum { DEFAULT_BATCH = 256 };

/* ---- open and close ---- */

static struct bz_session_options fill_in(const struct bz_engine *e,
                                         const struct bz_session_options *options)
{
    struct bz_session_options o = { 0 };
    if (options) o = *options;
    uint32_t trained = e->model.config.n_ctx;
    int64_t wish = e->file.store.params.num_ctx.set ? e->file.store.params.num_ctx.v : 0;
    if (!o.n_context && wish > 0 && wish <= trained) o.n_context = (uint32_t)wish;
    if (!o.n_context) o.n_context = trained < DEFAULT_CONTEXT ? trained : DEFAULT_CONTEXT;
    if (!o.n_batch) o.n_batch = DEFAULT_BATCH;
    if (o.n_batch > o.n_context) o.n_batch = o.n_context;
    return o;
}

uint64_t bz_session_bytes(const bz_engine *e, const struct bz_session_options *options)
{
    struct bz_session_options o = fill_in(e, options);
    uint64_t acts = acts_bytes(&e->model, &e->backend, o.n_batch);
    if (acts == UINT64_MAX) return acts;
    return kv_bytes(&e->model.config, o.n_context, o.n_batch, o.cache == BZ_CACHE_F16) + acts +
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
    s->on_batch = o.on_batch;
    s->go_on = o.go_on;
    s->callback_ctx = o.ctx;
    s->tokens = mem_alloc(o.n_context, sizeof *s->tokens);
    s->logits = mem_alloc(e->model.config.n_vocab, sizeof *s->logits);
    enum bz_status st = s->tokens && s->logits ? BZ_OK : fail_memory(err, o.n_context * 4ull);
    uint32_t n_canvas = e->model.config.canvas.n_canvas;
    if (st == BZ_OK)
        st = kv_open(&s->kv, &e->model.config, &e->backend, o.n_context, o.n_batch,
                     o.cache == BZ_CACHE_F16, err);
    if (st == BZ_OK) st = acts_open(&s->acts, &e->model, &e->backend, &s->kv, o.n_batch, err);
    if (st == BZ_OK && n_canvas) {
        s->canvas = mem_alloc(s->acts.canvas.all.rows, sizeof *s->canvas);
        if (!s->canvas) st = fail_memory(err, s->acts.canvas.all.rows * sizeof *s->canvas);
    }
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
    acts_close(&s->acts, &s->engine->backend);
    sampler_close(&s->sampler);
    mem_free(s->tokens);
    mem_free(s->logits);
    mem_free(s->canvas);
    mem_free(s);
}

/* ---- reading tokens ---- */

/* Are n tokens of the vocabulary, and is there room for them past the first n_used? */
static enum bz_status check_ids(const struct bz_session *s, const int32_t *ids, size_t n,
                                uint32_t n_used, struct bz_err *err)
{
    uint32_t n_vocab = s->engine->model.config.n_vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= n_vocab)
            return fail(err, BZ_ERR_ARGUMENT, "token id %d; this vocabulary ends at %u", ids[i],
                        n_vocab - 1);
    if (n > s->kv.n_ctx - n_used)
        return fail(err, BZ_ERR_LIMIT, "%zu tokens do not fit: %u of the context's %u are used", n,
                    n_used, s->kv.n_ctx);
    return BZ_OK;
}

enum bz_status session_check_ids(const struct bz_session *s, const int32_t *ids, size_t n,
                                 struct bz_err *err)
{
    return check_ids(s, ids, n, s->kv.n_past, err);
}

void session_advance(struct bz_session *s, const int32_t *ids, uint32_t n)
{
    if (s->kv.n_past == 0) s->worn = s->engine->worn;
    else if (s->worn != s->engine->worn) s->worn = WORN_MIXED;
    memcpy(s->tokens + s->kv.n_past, ids, n * sizeof *ids);
    kv_advance(&s->kv, n);
}

/* Logits of the n rows in acts.result, a few at a time; `pos` is the first one's position. */
static bool hand_out_logits(struct bz_session *s, struct run *r, uint32_t pos, uint32_t n,
                            bz_logits_fn on_logits, void *ctx)
{
    for (uint32_t at = 0; at < n; at += LOGIT_ROWS) {
        uint32_t rows = n - at < LOGIT_ROWS ? n - at : LOGIT_ROWS;
        model_logits(r, &s->engine->model, &s->acts, at, rows);
        model_check(r, &s->engine->model);
        for (uint32_t i = 0; i < rows; i++) {
            op_read(r, &s->acts.logits, i, s->logits, 1);
            if (r->status) return true;
            if (on_logits && !on_logits(ctx, pos + at + i, s->logits)) return false;
        }
    }
    return true;
}

static enum bz_status read_tokens(struct bz_session *s, const int32_t *ids, size_t n,
                                  size_t n_logits, bz_logits_fn on_logits, void *ctx, struct run *r,
                                  struct bz_err *err)
{
    for (size_t at = 0; at < n;) {
        uint32_t rows = n - at < s->n_batch ? (uint32_t)(n - at) : s->n_batch;
        size_t left = n - at - rows; /* tokens after this batch */
        uint32_t wanted = n_logits > left ? (uint32_t)(n_logits - left) : 0;
        if (wanted > rows) wanted = rows;
        s->acts.ids.rows = rows;
        op_write(r, &s->acts.ids, 0, ids + at, rows);
        kv_begin(&s->kv, rows);
        model_forward(r, &s->engine->model, &s->acts, wanted);
        bool go_on = hand_out_logits(s, r, s->kv.n_past + rows - wanted, wanted, on_logits, ctx);
        model_check(r, &s->engine->model);
        if (r->status) return fail(err, r->status, "%s", r->err.text);
        session_advance(s, ids + at, rows);
        at += rows;
        if (s->on_batch && !s->on_batch(s->callback_ctx, (uint32_t)at, (uint32_t)n)) go_on = false;
        if (!go_on) return fail(err, BZ_ERR_CANCELLED, "stopped on request");
    }
    s->has_logits = n_logits > 0;
    return BZ_OK;
}

enum bz_status bz_session_feed(bz_session *s, const int32_t *ids, size_t n, size_t n_logits,
                               bz_logits_fn on_logits, void *ctx, struct bz_err *err)
{
    if (n == 0) return BZ_OK;
    if (n_logits > n) n_logits = n;
    if (session_diffuses(s)) {
        if (on_logits)
            return fail(err, BZ_ERR_UNSUPPORTED,
                        "this model denoises a canvas; its text has no logits");
        n_logits = 0;
    }
    enum bz_status st = session_check_ids(s, ids, n, err);
    if (st) return st;
    struct run r = session_run(s);
    uint32_t before = s->kv.n_past;
    st = read_tokens(s, ids, n, n_logits, on_logits, ctx, &r, err);
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

enum bz_status session_keep(struct bz_session *s, const int32_t *ids, size_t n, uint32_t *kept,
                            struct bz_err *err)
{
    if (n == 0) return fail(err, BZ_ERR_ARGUMENT, "a session needs at least one token");
    enum bz_status st = check_ids(s, ids, n, 0, err);
    if (st) return st;
    size_t same = 0;
    bool current = s->worn == s->engine->worn; /* else the cache is of other weights */
    while (current && same < n && same < s->kv.n_past && ids[same] == s->tokens[same]) same++;
    bool complete = s->has_logits || session_diffuses(s);
    if (same == n && same == s->kv.n_past && complete) {
        *kept = (uint32_t)n;
        return BZ_OK;
    }
    if (same == n && !session_diffuses(s))
        same--; /* its last token is read again, for the logits */
    *kept = kv_truncate(&s->kv, (uint32_t)same);
    s->has_logits = false;
    return BZ_OK;
}

enum bz_status bz_session_set(bz_session *s, const int32_t *ids, size_t n, struct bz_err *err)
{
    uint32_t kept = 0;
    enum bz_status st = session_keep(s, ids, n, &kept, err);
    if (st || kept == n) return st;
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

enum bz_status session_origin(const struct bz_session *s, struct kv_origin *out, struct bz_err *err)
{
    *out = (struct kv_origin) { s->engine->model.fingerprint, s->worn };
    if (s->kv.n_past == 0) out->worn = s->engine->worn;
    if (out->worn != WORN_MIXED) return BZ_OK;
    return fail(err, BZ_ERR_ARGUMENT,
                "this session was computed with several sets of adapters, so it cannot be saved; "
                "set its tokens again first");
}

enum bz_status bz_session_save(bz_session *s, void **data, size_t *n_bytes, struct bz_err *err)
{
    struct run r = { .be = &s->engine->backend };
    struct buf out = { 0 };
    struct kv_origin origin;
    enum bz_status st = session_origin(s, &origin, err);
    if (st) return st;
    kv_save(&r, &s->kv, &origin, s->tokens, &out);
    if (out.failed || r.status) {
        size_t n = out.n;
        buf_free(&out);
        return r.status ? fail(err, r.status, "%s", r.err.text) : fail_memory(err, n);
    }
    *data = out.data;
    *n_bytes = out.n;
    return BZ_OK;
}

enum bz_status session_restore(struct bz_session *s, const struct source *snap, struct bz_err *err)
{
    struct run r = { .be = &s->engine->backend };
    s->has_logits = false;
    s->worn = s->engine->worn;
    const struct kv_origin here = { s->engine->model.fingerprint, s->worn };
    return kv_restore(&r, &s->kv, &here, snap, s->tokens, err);
}

enum bz_status bz_session_restore(bz_session *s, const void *data, size_t n_bytes,
                                  struct bz_err *err)
{
    struct source snap;
    enum bz_status st = source_open_memory(&snap, "session snapshot", data, n_bytes, err);
    if (st) {
        kv_truncate(&s->kv, 0);
        s->has_logits = false;
        return st;
    }
    st = session_restore(s, &snap, err);
    source_close(&snap);
    return st;
}
