/* wasm_gpu_session.c - exports: conversations on the GPU, whose steps are recorded programs.
 *
 * The host drives: it submits the programs that it is given, and reads results back when the device
 * is done. Recording changes nothing of a session. The inputs of a step (tokens, position) are
 * queued for writing by a call of their own, right before the submit. So sessions can take turns on
 * one device.
 */
#include "wasm/wasm_generation.h"

#include "base/mem.h"
#include "gpu/draw.h"
#include "step.h"
#include "wasm/host.h"

static struct gpu_ops *gpu_ops_of(const bz_session *s)
{
    return s->engine->backend.ctx;
}

/* ---- drawing ---- */

EXPORT(void, bz_wasm_gpu_draw_close, struct gpu_draw *d)
{
    if (d) gpu_draw_close(d);
    mem_free(d);
}

EXPORT(struct gpu_draw *, bz_wasm_gpu_draw_open, const bz_session *s, const char *text, uint32_t n)
{
    struct arena arena = { 0 };
    struct bz_generate_options o = bz_generate_defaults(s->engine);
    struct gpu_draw *d = mem_alloc(1, sizeof *d);
    struct str constraint = { 0 }, json = { text, n };
    struct gpu_draw_options how = { .n_ctx = s->kv.n_ctx,
                                    .n_vocab = s->engine->model.config.n_vocab };
    enum bz_status st = d ? wasm_read_options(&o, &constraint, s->engine, json, &arena)
                          : fail_memory(&wasm_err, sizeof *d);
    if (st == BZ_OK) st = sampling_check(&o.sampling, &wasm_err);
    how.sampling = &o.sampling;
    how.suppress = tokenizer_suppressed(s->engine->tokenizer, &how.n_suppress);
    how.masked = constraint.p != NULL;
    if (st == BZ_OK) st = gpu_draw_open(d, &how, &wasm_err);
    arena_free(&arena);
    if (wasm_failed(st)) {
        mem_free(d);
        return NULL;
    }
    gpu_draw_history(d, s->tokens, 0, s->kv.n_past);
    return d;
}

EXPORT(void, bz_wasm_gpu_draw_mask, const struct wasm_generation *w, const struct gpu_draw *d)
{
    gpu_draw_mask(d, w->mask);
}

/* ---- programs ---- */

/* A recorded step with what belongs to it. */
struct gpu_program_record {
    struct recorded recorded;
};

EXPORT(void, bz_wasm_gpu_program_free, struct gpu_program_record *p)
{
    if (p) recorded_free(&p->recorded);
    mem_free(p);
}

EXPORT(uint32_t, bz_wasm_gpu_program_number, const struct gpu_program_record *p)
{
    return p->recorded.program;
}

/* The program of the plan that was made; or why there is none. */
static struct gpu_program_record *finish(const struct run *r)
{
    struct recorded recorded = gpu_ops_record(r->be);
    struct gpu_program_record *p = mem_alloc(1, sizeof *p);
    if (p && r->status == BZ_OK && recorded.program) {
        p->recorded = recorded;
        return p;
    }
    wasm_failed(fail(&wasm_err, r->status ? r->status : BZ_ERR_MEMORY, "%s",
                     r->status ? r->err.text : "not enough memory to record a step"));
    recorded_free(&recorded);
    mem_free(p);
    return NULL;
}

EXPORT(struct gpu_program_record *, bz_wasm_gpu_record, bz_session *s, uint32_t rows,
       uint32_t n_logits, uint32_t horizon)
{
    uint32_t most = session_diffuses(s) ? 0 : LOGIT_ROWS;
    if (rows == 0 || rows > s->n_batch || n_logits > rows || n_logits > most) {
        wasm_failed(
            fail(&wasm_err, BZ_ERR_ARGUMENT, "a step of %u tokens with %u logits", rows, n_logits));
        return NULL;
    }
    struct run r = { .be = &s->engine->backend };
    step_plan(&r, s, rows, n_logits, horizon);
    return finish(&r);
}

EXPORT(struct gpu_program_record *, bz_wasm_gpu_canvas_record, bz_session *s, uint32_t horizon)
{
    struct run r = { .be = &s->engine->backend };
    if (!session_diffuses(s)) {
        wasm_failed(fail(&wasm_err, BZ_ERR_ARGUMENT, "this model has no canvas"));
        return NULL;
    }
    step_plan_denoise(&r, s, horizon);
    return finish(&r);
}

EXPORT(struct gpu_program_record *, bz_wasm_gpu_record_draw, bz_session *s,
       const struct gpu_draw *draw, uint32_t masked)
{
    struct run r = { .be = &s->engine->backend };
    step_plan_draw(&r, s, draw, masked != 0, 1);
    return finish(&r);
}

/* ---- steps ---- */

EXPORT(int32_t, bz_wasm_gpu_read, bz_session *s, const int32_t *ids, uint32_t n)
{
    if (wasm_failed(session_check_ids(s, ids, n, &wasm_err))) return -1;
    struct run r = { .be = &s->engine->backend };
    kv_begin(&s->kv, n);
    s->acts.ids.rows = n;
    op_write(&r, &s->acts.ids, 0, ids, n);
    gpu_write_step(r.be, s->kv.n_past, n, 0);
    return 0;
}

EXPORT(int32_t, bz_wasm_gpu_advance, bz_session *s, const int32_t *ids, uint32_t n,
       uint32_t has_logits)
{
    if (wasm_failed(session_check_ids(s, ids, n, &wasm_err))) return -1;
    session_advance(s, ids, n);
    s->has_logits = has_logits != 0;
    return 0;
}

EXPORT(int32_t, bz_wasm_gpu_draw, bz_session *s, uint32_t ahead, const struct gpu_draw *draw,
       uint32_t known)
{
    if (s->kv.n_past == 0) {
        wasm_failed(
            fail(&wasm_err, BZ_ERR_ARGUMENT, "feed at least one token before drawing the next"));
        return -1;
    }
    gpu_draw_history(draw, s->tokens, s->kv.n_past - known, known);
    gpu_write_step(&s->engine->backend, s->kv.n_past + ahead - 1, 1, draw->sampling.seed);
    s->has_logits = false;
    return 0;
}

EXPORT(int32_t, bz_wasm_gpu_read_drawn, bz_session *s, uint32_t ahead, const struct gpu_draw *draw,
       uint32_t place)
{
    if (ahead >= s->kv.n_ctx - s->kv.n_past) return -1;
    kv_begin(&s->kv, ahead + 1);
    if (place) gpu_write_step(&s->engine->backend, s->kv.n_past + ahead, 1, draw->sampling.seed);
    return 0;
}

EXPORT(int32_t, bz_wasm_gpu_set_drawn, bz_session *s, int32_t id)
{
    if (wasm_failed(session_check_ids(s, &id, 1, &wasm_err))) return -1;
    struct run r = { .be = &s->engine->backend };
    s->acts.ids.rows = 1;
    op_write(&r, &s->acts.ids, 0, &id, 1);
    return 0;
}

EXPORT(int32_t, bz_wasm_gpu_advance_drawn, bz_session *s, int32_t id)
{
    enum bz_status st = id == -1 ? fail(&wasm_err, BZ_ERR_ARGUMENT, "every token is forbidden")
                                 : session_check_ids(s, &id, 1, &wasm_err);
    if (wasm_failed(st)) return -1;
    session_advance(s, &id, 1);
    s->has_logits = false; /* other steps may be queued behind the one that made them */
    return 0;
}

EXPORT(gpu_buffer, bz_wasm_gpu_logits_buffer, const bz_session *s)
{
    return gpu_of(&s->acts.logits);
}

EXPORT(gpu_buffer, bz_wasm_gpu_step_buffer, const bz_session *s)
{
    return gpu_ops_of(s)->rec.step;
}

/* ---- snapshots ---- */

struct snapshot_plan {
    struct buf list, bytes;
};

static void plan_section(void *ctx, const struct kv_section *s)
{
    struct snapshot_plan *plan = ctx;
    struct host_range h = { .n_bytes = (uint32_t)s->n };
    if (s->bytes) {
        buf_put(&plan->bytes, s->bytes, s->n);
    } else {
        uint32_t row_bytes = s->rows_of->cols * tensor_width(s->rows_of);
        h = (struct host_range) { gpu_of(s->rows_of), s->row * row_bytes, h.n_bytes * row_bytes };
    }
    buf_put(&plan->list, &h, sizeof h);
}

EXPORT(int32_t, bz_wasm_gpu_save, const bz_session *s)
{
    struct snapshot_plan plan = { 0 };
    struct buf out = { 0 };
    struct kv_origin origin;
    if (wasm_failed(session_origin(s, &origin, &wasm_err))) return -1;
    kv_walk(&s->kv, &origin, s->tokens, plan_section, &plan);
    uint32_t n = (uint32_t)(plan.list.n / sizeof(struct host_range));
    buf_put(&out, &n, sizeof n);
    buf_put(&out, plan.list.data, plan.list.n);
    buf_put(&out, plan.bytes.data, plan.bytes.n);
    out.failed = out.failed || plan.list.failed || plan.bytes.failed;
    buf_free(&plan.list);
    buf_free(&plan.bytes);
    return wasm_give_text(&out);
}

EXPORT(int32_t, bz_wasm_snapshot_digest, uint32_t source, double n)
{
    static uint8_t digest[KV_DIGEST];
    struct source snap;
    enum bz_status st =
        host_source_open(&snap, source, "session snapshot", 16, (uint64_t)n, &wasm_err);
    if (st == BZ_OK) {
        st = kv_digest(&snap, snap.size, digest, &wasm_err);
        source_close(&snap);
    }
    if (wasm_failed(st)) return -1;
    wasm_show(digest, sizeof digest);
    return 0;
}

/* ---- adapters ---- */

EXPORT(void, bz_wasm_gpu_adapter_forget, bz_engine *e, int32_t id)
{
    lora_forget_bytes(&e->adapters[id].attached);
}
