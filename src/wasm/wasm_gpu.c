/* wasm_gpu.c - exports: loading weights to the GPU, and sessions whose steps are recorded programs.
 *
 * The host drives: it brings the windows of the weights, submits the programs it is handed, and reads
 * results back when the device is done. Nothing here waits.
 */
#include "wasm/wasm.h"

#include "base/mem.h"
#include "gpu/draw.h"
#include "gpu/ops_gpu.h"

static struct gpu_ops *gpu_ops_of_engine(const bz_engine *e)
{
    return e->backend.ctx;
}

/* ---- loading ---- */

/* What the host reads of a window; `window` goes back with the bytes. */
struct window_for_host {
    uint32_t source, n_bytes;
    double offset;
    struct upload_window window;
};

/* Bytes of weights still to be uploaded, of a fresh engine: all of them. */
EXPORT(double, bz_wasm_gpu_upload_bytes, const bz_engine *e)
{
    const struct upload *u = &gpu_ops_of_engine(e)->upload;
    return (double)(u->bytes_total - u->bytes_done);
}

/* Fill *out with the next window of at most max_bytes; 0 when there is none left. */
EXPORT(int32_t, bz_wasm_gpu_upload_next, bz_engine *e, uint32_t max_bytes,
       struct window_for_host *out)
{
    if (!upload_next(&gpu_ops_of_engine(e)->upload, max_bytes, &out->window)) return 0;
    out->source = (uint32_t)(uintptr_t)out->window.src->ctx;
    out->n_bytes = out->window.n_bytes;
    out->offset = (double)out->window.offset;
    return 1;
}

EXPORT(uint32_t, bz_wasm_gpu_window_size, void)
{
    return sizeof(struct window_for_host);
}

EXPORT(int32_t, bz_wasm_gpu_upload_give, bz_engine *e, const struct window_for_host *w,
       const void *bytes)
{
    return wasm_failed(upload_give(&gpu_ops_of_engine(e)->upload, &w->window, bytes, &wasm_err))
               ? -1
               : 0;
}

/* ---- drawing ---- */

EXPORT(void, bz_wasm_gpu_draw_close, struct gpu_draw *d)
{
    if (d) gpu_draw_close(d);
    mem_free(d);
}

/* How a session's tokens are drawn: options as for bz_wasm_generation_open. */
EXPORT(struct gpu_draw *, bz_wasm_gpu_draw_open, const bz_session *s, const char *text, uint32_t n)
{
    struct arena arena = { 0 };
    struct bz_generate_options o = bz_generate_defaults(s->engine);
    struct gpu_draw *d = mem_alloc(1, sizeof *d);
    size_t n_suppress;
    const int32_t *suppress = tokenizer_suppressed(s->engine->tokenizer, &n_suppress);
    enum bz_status st = d ? wasm_read_options(&o, (struct str) { text, n }, &arena)
                          : fail_memory(&wasm_err, sizeof *d);
    if (st == BZ_OK) st = sampling_check(&o.sampling, &wasm_err);
    if (st == BZ_OK)
        st = gpu_draw_open(d, &o.sampling, suppress, n_suppress, s->kv.n_ctx,
                           s->engine->model.config.n_vocab, &wasm_err);
    arena_free(&arena);
    if (!wasm_failed(st)) return d;
    mem_free(d);
    return NULL;
}

/* ---- steps ---- */

/* A recorded step with what the host needs to run it. */
struct gpu_program_record {
    struct recorded recorded;
};

/* Everything but the tokens of this step is recorded; positions begin at the session's. */
static struct gpu_program_record *record_step(bz_session *s, uint32_t rows, uint32_t n_logits,
                                              const struct gpu_draw *draw, uint32_t horizon)
{
    struct backend *be = &s->engine->backend;
    struct gpu_program_record *p = mem_alloc(1, sizeof *p);
    if (!p) {
        wasm_failed(fail_memory(&wasm_err, sizeof *p));
        return NULL;
    }
    struct run r = { .be = be };
    gpu_ops_begin(be, s->kv.n_past, horizon);
    s->acts.ids.rows = rows;
    model_forward(&r, &s->engine->model, &s->kv, &s->acts, n_logits);
    if (n_logits) model_logits(&r, &s->engine->model, &s->acts, 0, n_logits);
    if (draw) gpu_draw_record(&r, draw, &s->acts.ids, &s->acts.logits);
    p->recorded = gpu_ops_end(be);
    if (r.status == BZ_OK && p->recorded.program) return p;
    wasm_failed(fail(&wasm_err, r.status ? r.status : BZ_ERR_MEMORY, "%s",
                     r.status ? r.err.text : "not enough memory to record a step"));
    recorded_free(&p->recorded);
    mem_free(p);
    return NULL;
}

EXPORT(void, bz_wasm_gpu_program_free, struct gpu_program_record *p)
{
    if (p) recorded_free(&p->recorded);
    mem_free(p);
}

EXPORT(uint32_t, bz_wasm_gpu_program_number, const struct gpu_program_record *p)
{
    return p->recorded.program;
}

/* Record reading n <= n_batch tokens; logits of the last n_logits <= 8 are made, and with `draw` the
 * next token is left in the session's buffer. The tokens and the position are queued for writing now, so
 * the host submits the program before the next call. */
EXPORT(struct gpu_program_record *, bz_wasm_gpu_feed, bz_session *s, const int32_t *ids, uint32_t n,
       uint32_t n_logits, const struct gpu_draw *draw)
{
    if (n == 0 || n > s->n_batch || n_logits > n || n_logits > LOGIT_ROWS) {
        wasm_failed(
            fail(&wasm_err, BZ_ERR_ARGUMENT, "a step of %u tokens with %u logits", n, n_logits));
        return NULL;
    }
    if (wasm_failed(session_check_ids(s, ids, n, &wasm_err))) return NULL;
    kv_begin(&s->kv, n);
    struct gpu_program_record *p = record_step(s, n, n_logits, draw, s->kv.n_past + n);
    if (!p) return NULL;
    struct run r = { .be = &s->engine->backend };
    op_write(&r, &s->acts.ids, 0, ids, n);
    gpu_write_step(&s->engine->backend, s->kv.n_past, n, draw ? draw->sampling.seed : 0);
    session_took(s, ids, n);
    if (draw) gpu_draw_history(draw, s->tokens, 0, s->kv.n_past);
    return p;
}

/* Record one decode step: the token in the session's buffer goes through the network, the next one
 * replaces it, and the position moves on. Submit it as often as tokens are wanted; past position
 * `horizon` a program recorded for a longer history is faster. */
EXPORT(struct gpu_program_record *, bz_wasm_gpu_decode, bz_session *s, uint32_t horizon,
       const struct gpu_draw *draw)
{
    return record_step(s, 1, 1, draw, horizon);
}

/* The host will submit up to n decode steps before it knows their tokens; -1 when they do not fit. */
EXPORT(int32_t, bz_wasm_gpu_ahead, bz_session *s, uint32_t n)
{
    if (n > s->kv.n_ctx - s->kv.n_past) return -1;
    kv_begin(&s->kv, n);
    return 0;
}

/* The next decode step to be submitted starts here: `id`, at the session's position. */
EXPORT(int32_t, bz_wasm_gpu_resume, bz_session *s, int32_t id, const struct gpu_draw *draw)
{
    if (wasm_failed(session_check_ids(s, &id, 1, &wasm_err))) return -1;
    struct run r = { .be = &s->engine->backend };
    op_write(&r, &s->acts.ids, 0, &id, 1);
    gpu_write_step(&s->engine->backend, s->kv.n_past, 1, draw->sampling.seed);
    return 0;
}

/* A decode step put `id` into the cache. */
EXPORT(int32_t, bz_wasm_gpu_took, bz_session *s, int32_t id)
{
    if (wasm_failed(session_check_ids(s, &id, 1, &wasm_err))) return -1;
    session_took(s, &id, 1);
    return 0;
}

/* Where results are: the buffers of the logits and of the tokens. */
EXPORT(uint32_t, bz_wasm_gpu_logits_buffer, const bz_session *s)
{
    return gpu_of(&s->acts.logits);
}

EXPORT(uint32_t, bz_wasm_gpu_ids_buffer, const bz_session *s)
{
    return gpu_of(&s->acts.ids);
}
