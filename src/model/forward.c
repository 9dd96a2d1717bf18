/* forward.c - a session's steps: text.c's network on a tape, given memory, kept and run.
 *
 * Steps of any number of rows have one of few kinds: what differs is which nodes there are, not the
 * number of rows. acts_open places a tape of each kind at its largest, so that every step of the
 * kind finds the same memory.
 */
#include "model/forward.h"

#include <string.h>

/* ---- tapes ---- */

/* Rows of a step whose logits are wanted, at most. */
static uint32_t most_out(const struct backend *be, uint32_t n_batch)
{
    return be->fuse && n_batch > LOGIT_ROWS ? LOGIT_ROWS : n_batch;
}

/* Its nodes are all there. */
static void place(struct tape *t, struct tape_memory *m, const struct backend *be)
{
    if (t->failed) return;
    tape_finish(t);
    tape_groups(t);
    if (be->fuse && !t->failed) be->fuse(be->ctx, t);
    if (!t->failed) tape_place(t, m);
}

struct step_of {
    const struct model *m;
    const struct backend *be;
    const struct kv_cache *kv;
    uint32_t n_batch;
    bool taps;
    bool logits; /* on the same tape */
};

static void write_step(struct acts *a, const struct step_of *of, uint32_t rows, uint32_t n_out)
{
    struct tape *t = &a->step;
    struct text_step s = { .m = of->m, .kv = of->kv, .n_out = n_out };
    tape_begin(t, of->m->config.eps, rows, n_out);
    t->max_out = most_out(of->be, of->n_batch);
    t->max_rows = rows == n_out ? t->max_out : of->n_batch;
    t->taps = of->taps;
    struct value *ids = tape_input(t, &a->ids, rows);
    struct value *x = text_forward(t, &s, ids);
    if (of->logits) tape_result(t, text_logits(t, of->m, x), &a->logits);
    else tape_result(t, x, &a->result);
    if (s.ple_rows) { /* the host may write them, but wants nothing of them afterwards */
        tape_result(t, s.ple_rows, &a->ple);
        s.ple_rows->donated = true;
    }
    place(t, &a->memory, of->be);
}

static void write_head(struct acts *a, const struct step_of *of, uint32_t first, uint32_t n)
{
    struct tape *t = &a->head;
    tape_begin(t, of->m->config.eps, a->result.rows, n);
    t->max_rows = t->max_out = LOGIT_ROWS;
    t->taps = of->taps;
    struct value *x = tape_input(t, &a->result, a->result.rows);
    x = tape_rows(t, x, first, n);
    tape_result(t, text_logits(t, of->m, x), &a->logits);
    place(t, &a->memory, of->be);
    a->head_first = first;
}

/* rows: it ends with the final norm, without head and sampler. */
static void write_denoise(struct acts *a, const struct step_of *of, bool rows)
{
    struct tape *t = &a->denoise;
    uint32_t n = a->canvas.n;
    struct text_step s = { .m = of->m, .kv = of->kv, .canvas = true, .n_out = n };
    tape_begin(t, of->m->config.eps, n, n);
    t->max_rows = t->max_out = n;
    t->taps = of->taps;
    struct value *ids = tape_input(t, &a->canvas.ids, n);
    struct value *soft = tape_input(t, &a->soft, n);
    struct value *x = canvas_forward(t, &s, ids, soft);
    if (rows) tape_result(t, x, &a->result);
    else tape_result(t, canvas_end(t, of->m, &a->canvas, x), &a->soft);
    place(t, &a->memory, of->be);
    a->denoise_rows = rows;
}

/* ---- memory ---- */

/* A tape of every kind at its largest. False: memory is short. */
static bool write_all_kinds(struct acts *a, const struct step_of *of)
{
    uint32_t most = most_out(of->be, of->n_batch);
    const uint32_t kinds[][2] = {
        { most, most },                                        /* all rows go on */
        { of->n_batch, of->n_batch > most ? most : most - 1 }, /* some do */
        { of->n_batch, 0 },                                    /* none does */
    };
    bool canvas = of->m->config.canvas.n_canvas > 0; /* its text has no logits */
    for (int i = canvas ? 2 : 0; i < 3; i++) {
        write_step(a, of, kinds[i][0], kinds[i][1]);
        if (a->step.failed) return false;
    }
    for (int rows = of->logits; canvas && rows < 2; rows++) {
        write_denoise(a, of, rows == 0);
        if (a->denoise.failed) return false;
    }
    if (of->logits) return true;
    a->result.rows = most;
    write_head(a, of, 0, most < LOGIT_ROWS ? most : LOGIT_ROWS);
    if (!a->head.failed) write_head(a, of, 0, 1);
    return !a->head.failed;
}

struct act_shape {
    struct tensor *t;
    uint32_t rows, cols;
};

enum { N_ACTS = 5 };

static void list_tensors(struct act_shape list[N_ACTS], struct acts *a, const struct model *m,
                         const struct backend *be, uint32_t n_batch)
{
    const struct config *c = &m->config;
    uint32_t ple = c->n_ple ? c->n_ple * c->n_layer : 1, n = c->canvas.n_canvas;
    uint32_t n_result = n_batch > n ? n_batch : n;
    const struct act_shape all[N_ACTS] = {
        { &a->ids, n_batch, 1 },
        { &a->ple, c->n_ple ? n_batch : 1, ple },
        { &a->result, be->fuse ? 1 : n_result, c->n_embd },
        { &a->logits, LOGIT_ROWS, c->n_vocab },
        { &a->soft, n ? n : 1, n ? c->n_embd : 1 },
    };
    memcpy(list, all, sizeof all);
    for (int i = 0; i < N_ACTS; i++) all[i].t->cols = all[i].cols;
    if (n) canvas_shape(&a->canvas, n);
}

uint64_t acts_bytes(const struct model *m, const struct backend *be, uint32_t n_batch)
{
    struct acts a = { 0 };
    struct act_shape list[N_ACTS];
    struct kv_cache kv = { .config = &m->config };
    kv.layers = mem_alloc(m->config.n_own, sizeof *kv.layers);
    const struct step_of of = { m, be, &kv, n_batch, false, be->fuse != NULL };
    list_tensors(list, &a, m, be, n_batch);
    bool ok = kv.layers && write_all_kinds(&a, &of);
    uint64_t n = tape_memory_bytes(&a.memory);
    for (size_t i = 0; i < N_ACTS; i++) n += (uint64_t)list[i].rows * list[i].cols * sizeof(float);
    n += a.canvas.all.size * sizeof(float);
    tape_free(&a.step);
    tape_free(&a.head);
    tape_free(&a.denoise);
    tape_memory_close(&a.memory, be);
    mem_free(kv.layers);
    return ok ? n : UINT64_MAX;
}

enum bz_status acts_open(struct acts *out, const struct model *m, const struct backend *be,
                         const struct kv_cache *kv, uint32_t n_batch, struct bz_err *err)
{
    struct acts a = { .kv = kv, .n_batch = n_batch };
    struct act_shape list[N_ACTS];
    const struct step_of of = { m, be, kv, n_batch, false, be->fuse != NULL };
    list_tensors(list, &a, m, be, n_batch);
    bool ok = write_all_kinds(&a, &of) && tape_memory_open(&a.memory, be);
    for (size_t i = 0; ok && i < N_ACTS; i++)
        ok = tensor_alloc(be, list[i].t, list[i].rows, list[i].cols);
    ok = ok && (!a.canvas.n || canvas_alloc(be, &a.canvas));
    if (!ok) {
        acts_close(&a, be);
        return fail(err, BZ_ERR_MEMORY, "not enough memory for a batch of %u tokens", n_batch);
    }
    *out = a;
    return BZ_OK;
}

void acts_close(struct acts *a, const struct backend *be)
{
    struct tensor *const all[N_ACTS] = { &a->ids, &a->ple, &a->result, &a->logits, &a->soft };
    for (size_t i = 0; i < N_ACTS; i++) tensor_free(be, all[i]);
    canvas_free(be, &a->canvas);
    tape_memory_close(&a->memory, be);
    tape_free(&a->step);
    tape_free(&a->head);
    tape_free(&a->denoise);
}

/* ---- running ---- */

/* Is the tape that of the last step? A backend that fuses records a step once, and its rules of
 * fusion may change. */
static bool is_kept(const struct tape *t, const struct run *r, uint32_t rows, uint32_t n_out)
{
    return t->ready && !r->be->fuse && t->rows == rows && t->n_out == n_out &&
           t->taps == (r->tap != NULL);
}

static void run_tape(struct run *r, struct tape *t, struct acts *a, uint32_t pos)
{
    r->canvas = t == &a->denoise;
    if (t->failed || (!t->ready && !tape_bind(t, &a->memory, r->be)))
        run_fail(r, BZ_ERR_MEMORY, "not enough memory for a step of %u tokens", t->rows);
    else tape_run(t, r, pos);
}

void model_forward(struct run *r, const struct model *m, struct acts *a, uint32_t n_logits)
{
    const struct step_of of = { m, r->be, a->kv, a->n_batch, r->tap != NULL, false };
    if (!is_kept(&a->step, r, a->ids.rows, n_logits)) write_step(a, &of, a->ids.rows, n_logits);
    a->result.rows = n_logits;
    run_tape(r, &a->step, a, a->kv->n_past);
}

void model_logits(struct run *r, const struct model *m, struct acts *a, uint32_t first, uint32_t n)
{
    const struct step_of of = { m, r->be, a->kv, a->n_batch, r->tap != NULL, false };
    bool kept = is_kept(&a->head, r, a->result.rows, n) && a->head_first == first;
    if (!kept) write_head(a, &of, first, n);
    a->logits.rows = n;
    run_tape(r, &a->head, a, 0);
}

void model_forget(struct run *r, struct acts *a)
{
    static const float zeros[1024];
    struct tensor flat = tensor_shape(&a->soft, 1);
    uint32_t n = (uint32_t)a->soft.size;
    for (uint32_t at = 0; at < n; at += 1024)
        op_write(r, &flat, at, zeros, n - at < 1024 ? n - at : 1024);
}

static void denoise(struct run *r, const struct model *m, struct acts *a, bool rows)
{
    const struct step_of of = { m, r->be, a->kv, a->n_batch, r->tap != NULL, false };
    uint32_t n = a->canvas.n;
    if (!is_kept(&a->denoise, r, n, n) || a->denoise_rows != rows) write_denoise(a, &of, rows);
    a->result.rows = a->soft.rows = n;
    run_tape(r, &a->denoise, a, a->kv->n_past);
}

void model_denoise(struct run *r, const struct model *m, struct acts *a)
{
    denoise(r, m, a, false);
}

void model_canvas_rows(struct run *r, const struct model *m, struct acts *a)
{
    denoise(r, m, a, true);
}

void model_step(struct run *r, const struct model *m, struct acts *a, uint32_t n_logits)
{
    const struct step_of of = { m, r->be, a->kv, a->n_batch, r->tap != NULL, true };
    write_step(a, &of, a->ids.rows, n_logits);
    a->logits.rows = n_logits;
    run_tape(r, &a->step, a, a->kv->n_past);
}
