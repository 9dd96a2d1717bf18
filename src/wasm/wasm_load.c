/* wasm_load.c - exports: bringing a model to the GPU.
 *
 * The host drives. It asks what a session will take and uploads the windows of the weights. As long
 * as the per-layer embedding table is still in the file, it also uploads the rows of each step.
 * Nothing here waits.
 */
#include <math.h>
#include <string.h>

#include "gpu/draw.h"
#include "gpu/selftest.h"
#include "kernels.h"
#include "step.h"
#include "wasm/wasm.h"

static struct gpu_ops *gpu_ops_of_engine(const bz_engine *e)
{
    return e->backend.ctx;
}

/* ---- windows ---- */

/* One window on its way; the host keeps as many as it has under way. */
struct upload_lane {
    struct host_window shown; /* what the host reads of it */
    struct upload_window window;
    struct recorded placing;
};

EXPORT(double, bz_wasm_gpu_upload_bytes, const bz_engine *e)
{
    const struct upload *u = &gpu_ops_of_engine(e)->upload;
    return (double)(u->bytes_total - u->bytes_done);
}

EXPORT(void, bz_wasm_gpu_upload_kernels, bz_engine *e)
{
    static uint32_t pipelines[3];
    struct gpu_ops *g = gpu_ops_of_engine(e);
    bool blocks, repack_q4_k, repack_q6_k;
    upload_kernels(&g->upload, &blocks, &repack_q4_k, &repack_q6_k);
    pipelines[0] = blocks ? record_pipeline(&g->rec, KERNEL_REPACK_BLOCKS) : 0;
    pipelines[1] = repack_q4_k ? record_pipeline(&g->rec, KERNEL_REPACK_Q4_K) : 0;
    pipelines[2] = repack_q6_k ? record_pipeline(&g->rec, KERNEL_REPACK_Q6_K) : 0;
    wasm_show(pipelines, sizeof pipelines);
}

EXPORT(int32_t, bz_wasm_gpu_upload_next, bz_engine *e, uint32_t max_bytes, uint32_t max_placed,
       struct upload_lane *lane)
{
    const struct upload_window *w = &lane->window;
    if (!upload_next(&gpu_ops_of_engine(e)->upload, max_bytes, max_placed, &lane->window)) return 0;
    lane->shown = (struct host_window) { (uint32_t)(uintptr_t)w->src->ctx, w->n_bytes,
                                         (double)w->offset, w->placed };
    return 1;
}

EXPORT(uint32_t, bz_wasm_gpu_lane_bytes, void)
{
    return sizeof(struct upload_lane);
}

EXPORT(int32_t, bz_wasm_gpu_upload_give, bz_engine *e, const struct upload_lane *lane,
       const void *bytes)
{
    return wasm_failed(upload_give(&gpu_ops_of_engine(e)->upload, &lane->window, bytes, &wasm_err))
               ? -1
               : 0;
}

EXPORT(int32_t, bz_wasm_gpu_upload_place, bz_engine *e, struct upload_lane *lane,
       gpu_buffer staging, gpu_buffer scratch)
{
    struct gpu_ops *g = gpu_ops_of_engine(e);
    enum bz_status st = upload_place(&g->upload, &g->rec, &lane->window, staging, scratch,
                                     &lane->placing, &wasm_err);
    return wasm_failed(st) ? -1 : (int32_t)lane->placing.program;
}

EXPORT(void, bz_wasm_gpu_upload_placed, struct upload_lane *lane)
{
    recorded_free(&lane->placing);
}

EXPORT(double, bz_wasm_gpu_weight_bytes, const bz_engine *e)
{
    return (double)gpu_ops_of_engine(e)->upload.bytes_on_device;
}

/* ---- the per-layer embedding table ---- */

EXPORT(int32_t, bz_wasm_gpu_has_table, const bz_engine *e)
{
    return weight_exists(&e->model.ple_embd);
}

static struct gpu_weight *table_of(const bz_engine *e)
{
    return e->model.ple_embd.mem;
}

EXPORT(gpu_buffer, bz_wasm_gpu_table_buffer, const bz_engine *e, uint32_t i)
{
    const struct gpu_weight *table = table_of(e);
    return i < table->n_parts ? table->parts[i].buffer : 0;
}

static void show_table(const struct weight *w)
{
    static struct host_table table;
    table = (struct host_table) { (uint32_t)(uintptr_t)w->src->ctx,
                                  (uint32_t)quant_row_bytes(w->fmt, w->cols), (double)w->offset,
                                  w->rows };
    wasm_show(&table, sizeof table);
}

EXPORT(void, bz_wasm_gpu_leave_table, bz_engine *e)
{
    upload_leave(&gpu_ops_of_engine(e)->upload, &e->model.ple_embd);
    show_table(&e->model.ple_embd);
}

EXPORT(void, bz_wasm_gpu_postpone_table, bz_engine *e)
{
    upload_postpone(&gpu_ops_of_engine(e)->upload, &e->model.ple_embd);
    show_table(&e->model.ple_embd);
}

EXPORT(void, bz_wasm_gpu_resume_table, bz_engine *e)
{
    upload_resume(&gpu_ops_of_engine(e)->upload);
}

EXPORT(void, bz_wasm_gpu_table_there, bz_engine *e)
{
    table_of(e)->away = false;
}

EXPORT(int32_t, bz_wasm_gpu_table_rows, bz_session *s, uint32_t first, uint32_t n,
       const uint8_t *bytes)
{
    const struct model *m = &s->engine->model;
    size_t row_bytes = quant_row_bytes(m->ple_embd.fmt, m->ple_embd.cols);
    struct run r = { .be = &s->engine->backend };
    const float *values;
    for (uint32_t i = 0; i < n; i++) {
        enum bz_status st =
            upload_row(&gpu_ops_of_engine(s->engine)->upload, &m->ple_embd, bytes + i * row_bytes,
                       text_ple_scale(m), &values, &wasm_err);
        if (wasm_failed(st)) return -1;
        op_write(&r, &s->acts.ple, first + i, values, 1);
    }
    return 0;
}

/* ---- what a session takes ---- */

EXPORT(int32_t, bz_wasm_gpu_profile, const bz_engine *e)
{
    const struct gpu_ops *g = e->backend.ctx;
    wasm_show(g->profile, strlen(g->profile));
    return g->int8;
}

EXPORT(void, bz_wasm_gpu_without, bz_engine *e, uint32_t rules)
{
    gpu_ops_of_engine(e)->without = rules;
}

EXPORT(void, bz_wasm_gpu_free_scratch, bz_engine *e)
{
    struct gpu_ops *g = gpu_ops_of_engine(e);
    for (int k = 0; k < N_GPU_SCRATCH; k++) {
        struct gpu_scratch *s = &g->scratch[k];
        while (s->n > 0) gpu_buffer_free(s->buffers[--s->n]);
        s->bytes = 0;
    }
}

enum { PROMPT_ROWS = 16 }; /* prompts up to this length have the pipelines of one of LOGIT_ROWS */

/* What the steps of a session need together. */
struct reserve_walk {
    bz_session *s;
    struct run r;
    struct recorder *rec;
    enum reserve what;                /* groups up to this one ask for their pipelines now */
    uint64_t scratch[PLAN_SCRATCHES]; /* bytes of each that the largest plan needs */
};

/* Take the plan that was made for this group of steps. Returns the bytes of its parameters. */
static uint64_t take_plan(struct reserve_walk *w, enum reserve group)
{
    const struct gpu_plan *p = &w->rec->plan;
    for (int k = 0; k < PLAN_SCRATCHES; k++)
        if (p->scratch[k] > w->scratch[k]) w->scratch[k] = p->scratch[k];
    if (w->what != RESERVE_BYTES) record_compile(w->rec, (uint8_t)group, group <= w->what);
    return recorded_bytes(p->n);
}

static uint64_t take_step(struct reserve_walk *w, enum reserve group, uint32_t rows,
                          uint32_t n_logits, uint32_t horizon)
{
    step_plan(&w->r, w->s, rows, n_logits, horizon);
    return take_plan(w, group);
}

static uint64_t take_draw(struct reserve_walk *w, enum reserve group, float temperature,
                          bool masked)
{
    struct gpu_draw draw = { .sampling = bz_generate_defaults(w->s->engine).sampling };
    size_t n_suppress;
    tokenizer_suppressed(w->s->engine->tokenizer, &n_suppress);
    draw.n_suppress = (uint32_t)n_suppress;
    draw.sampling.temperature = temperature;
    step_plan_draw(&w->r, w->s, &draw, masked, w->s->kv.n_ctx);
    return take_plan(w, group);
}

static uint64_t take_denoise(struct reserve_walk *w, enum reserve group, uint32_t horizon)
{
    step_plan_denoise(&w->r, w->s, horizon);
    return take_plan(w, group);
}

/* Prompts of other lengths, whose products have other tiles, and longer histories, for which
 * workgroups of attention have more heads. */
static void take_rest(struct reserve_walk *w, uint32_t near)
{
    const bz_session *s = w->s;
    const uint32_t far = s->kv.n_ctx, split[] = { 1, 2, 4 };
    for (uint32_t n = s->n_batch; n > PROMPT_ROWS; n -= (n + 4) / 5)
        take_step(w, RESERVE_REST, n, !session_diffuses(s), far);
    if (session_diffuses(s)) return;
    /* which take no more scratch than the longest */
    for (uint32_t horizon = near; w->what != RESERVE_BYTES && horizon < far / 2; horizon *= 2)
        for (size_t i = 0; i < sizeof split / sizeof *split && split[i] <= s->n_batch; i++)
            take_step(w, RESERVE_REST, split[i], 1, 2 * horizon);
}

/* Every kind of step that the session will have, at the start of a text and far from it. A text
 * begins with a short prompt and goes on row by row. A prompt of eight rows has the pipelines of
 * all up to 16. Returns the bytes of parameters that live at one time. */
static uint64_t take_all(struct reserve_walk *w, struct gpu_weight *table)
{
    const bz_session *s = w->s;
    /* 6: too few for tiles of products, too many for shares of attention */
    const uint32_t rows[] = { s->n_batch, LOGIT_ROWS, LOGIT_ROWS / 2, 6, 2, 1 };
    const uint32_t far = s->kv.n_ctx, near = far < FIRST_HORIZON ? far : FIRST_HORIZON,
                   prompt = LOGIT_ROWS < s->n_batch ? LOGIT_ROWS : s->n_batch;
    take_step(w, RESERVE_FIRST, prompt, 1, near); /* the first prompt comes before the table */
    if (table) table->away = false;
    uint64_t bytes = 0;
    for (int masked = 0; masked < 2; masked++) /* a text may have both */
        bytes += take_draw(w, RESERVE_FIRST, 1, masked) + take_draw(w, RESERVE_FIRST, 0, masked);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i] > s->n_batch) continue;
        uint32_t n_logits = rows[i] < LOGIT_ROWS ? rows[i] : LOGIT_ROWS;
        bool soon = rows[i] == prompt || rows[i] == 1;
        uint64_t n = take_step(w, RESERVE_ALL, rows[i], n_logits, far);
        /* At one time: a whole batch, a prompt's end, a decode step being recorded anew. */
        if (rows[i] == s->n_batch || rows[i] == 1) bytes += 2 * n;
        take_step(w, RESERVE_ALL, rows[i], 0, far);
        take_step(w, RESERVE_ALL, rows[i], 1, far);
        if (rows[i] <= FIRST_HORIZON) /* attention differs */
            take_step(w, soon ? RESERVE_STEPS : RESERVE_ALL, rows[i], 1, near);
    }
    take_rest(w, near);
    return bytes;
}

/* The same of a diffusion model: prompts without logits, and steps of the canvas, which becomes
 * one of the prompts. */
static uint64_t take_passes(struct reserve_walk *w)
{
    const bz_session *s = w->s;
    const uint32_t rows[] = { s->n_batch, LOGIT_ROWS, LOGIT_ROWS / 2, 6, 2, 1 };
    const uint32_t far = s->kv.n_ctx, near = far < FIRST_HORIZON ? far : FIRST_HORIZON,
                   prompt = LOGIT_ROWS < s->n_batch ? LOGIT_ROWS : s->n_batch,
                   n = s->acts.canvas.n < s->n_batch ? s->acts.canvas.n : s->n_batch;
    take_step(w, RESERVE_FIRST, prompt, 0, near);
    take_denoise(w, RESERVE_FIRST, near);
    take_step(w, RESERVE_STEPS, n, 0, near);
    /* At one time: a whole batch, a canvas's end, a step of the canvas being recorded anew. */
    uint64_t bytes = 2 * take_denoise(w, RESERVE_ALL, far);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i] > s->n_batch) continue;
        uint64_t step = take_step(w, RESERVE_ALL, rows[i], 0, far);
        if (rows[i] == s->n_batch) bytes += 2 * step;
    }
    take_rest(w, near);
    return bytes;
}

EXPORT(double, bz_wasm_gpu_reserve, bz_session *s, enum reserve what)
{
    struct gpu_ops *g = gpu_ops_of_engine(s->engine);
    struct reserve_walk w = { s, { .be = &s->engine->backend }, &g->rec, what, { 0 } };
    struct gpu_weight *table = table_of(s->engine);
    const bool away = table && table->away;
    g->parts_room = g->tuning->parts_bytes;
    bool diffuses = session_diffuses(s);
    uint64_t bytes = diffuses ? take_passes(&w) : take_all(&w, table);
    /* Lengths that were not gone through get on with what these take. */
    uint64_t parts = w.scratch[SCRATCH_PARTS];
    if (parts < g->scratch[SCRATCH_PARTS].bytes) parts = g->scratch[SCRATCH_PARTS].bytes;
    if (parts < g->tuning->parts_bytes) g->parts_room = (uint32_t)parts;
    if (table) table->away = away;
    s->acts.ids.rows = 0;
    if (w.r.status == BZ_OK && !gpu_ops_reserve(w.r.be, w.scratch))
        run_fail(&w.r, BZ_ERR_LIMIT, "too many sessions of different sizes");
    if (wasm_failed(w.r.status)) {
        wasm_err = w.r.err;
        return -1;
    }
    if (!diffuses) bytes += gpu_draw_bytes(s->kv.n_ctx, s->engine->model.config.n_vocab);
    return (double)bytes;
}

EXPORT(void, bz_wasm_gpu_expect, bz_session *s, uint32_t horizon)
{
    struct run r = { .be = &s->engine->backend };
    step_plan(&r, s, 1, 1, horizon);
    record_compile(&gpu_ops_of_engine(s->engine)->rec, 0, true);
}

EXPORT(void, bz_wasm_gpu_ask_queued, bz_engine *e, enum reserve group)
{
    record_queued(&gpu_ops_of_engine(e)->rec, group);
}

EXPORT(enum reserve, bz_wasm_gpu_awaits, bz_session *s, uint32_t rows, uint32_t n_logits,
       uint32_t horizon, enum reserve first, enum reserve last)
{
    struct run r = { .be = &s->engine->backend };
    step_plan(&r, s, rows, n_logits, horizon);
    return record_awaits(&gpu_ops_of_engine(s->engine)->rec, first, last);
}

EXPORT(enum reserve, bz_wasm_gpu_canvas_awaits, bz_session *s, uint32_t horizon, enum reserve first,
       enum reserve last)
{
    struct run r = { .be = &s->engine->backend };
    step_plan_denoise(&r, s, horizon);
    return record_awaits(&gpu_ops_of_engine(s->engine)->rec, first, last);
}

/* ---- the self-test ---- */

EXPORT(int32_t, bz_wasm_gpu_demote, bz_engine *e, uint32_t kernel)
{
    return recorder_demote(&gpu_ops_of_engine(e)->rec, kernel);
}

EXPORT(struct selftest *, bz_wasm_gpu_selftest_open, bz_engine *e)
{
    struct selftest *t = selftest_open(&e->backend, &e->model.rope_global, &wasm_err);
    if (!t) wasm_failed(BZ_ERR_MEMORY);
    return t;
}

EXPORT(void, bz_wasm_gpu_selftest_close, struct selftest *t)
{
    selftest_close(t);
}

EXPORT(int32_t, bz_wasm_gpu_selftest_prepare, struct selftest *t)
{
    bool more;
    return wasm_failed(selftest_prepare(t, &more, &wasm_err)) ? -1 : more;
}

EXPORT(int32_t, bz_wasm_gpu_selftest_record, struct selftest *t)
{
    static struct host_range results;
    if (wasm_failed(selftest_record(t, &wasm_err))) return -1;
    results.buffer = selftest_results(t, &results.n_bytes);
    wasm_show(&results, sizeof results);
    return (int32_t)selftest_program(t);
}

EXPORT(int32_t, bz_wasm_gpu_selftest_judge, struct selftest *t, const uint8_t *bytes)
{
    uint32_t demoted = selftest_judge(t, bytes);
    struct buf b = { 0 };
    buf_putc(&b, '[');
    uint32_t n;
    const struct record_kernel *k = selftest_kernels(t, &n);
    for (uint32_t i = 0; i < n; i++, k++) {
        if (k->verdict == KERNEL_UNUSED) continue;
        buf_printf(&b, "%s{\"kernel\":%u,\"ok\":%s,\"tested\":%s", b.n > 1 ? "," : "", k->number,
                   k->verdict == KERNEL_WRONG ? "false" : "true",
                   k->verdict == KERNEL_UNTESTED ? "false" : "true");
        buf_printf(
            &b, ",\"plain\":%s,\"nmse\":", kernel_plain(k->number) == k->number ? "true" : "false");
        if (isfinite(k->nmse)) buf_printf(&b, "%.3g}", k->nmse);
        else buf_puts(&b, "null}");
    }
    buf_putc(&b, ']');
    return wasm_give_text(&b) < 0 ? -1 : (int32_t)demoted;
}
