/* pass.c - see pass.h. */
#include "train/pass.h"

/* ---- the tape ---- */

/* Of n tokens, placed. */
static void write_tape(struct pass *p, uint32_t n, bool gradients, float weight)
{
    const struct model *m = p->m;
    struct tape *t = &p->tape;
    struct text_step s = { .m = m, .kv = &p->kv, .n_out = n };
    tape_begin(t, m->config.eps, n, n);
    t->max_rows = t->max_out = p->n_max;
    t->trains = true;
    struct value *ids = tape_input(t, &p->ids, n);
    struct value *targets = tape_input(t, &p->targets, n);
    struct value *x = text_forward(t, &s, ids);
    struct head_loss end = tape_head_loss(t, x, model_head(m), targets, m->config.softcap, weight);
    tape_result(t, end.loss, &p->loss);
    if (gradients) tape_differentiate(t, x, end.dx, p->keep_all);
    if (!t->failed) tape_finish(t);
    if (!t->failed) tape_groups(t);
    if (!t->failed && p->be->fuse) p->be->fuse(p->be->ctx, t);
    if (!t->failed) tape_place(t, &p->memory);
}

/* ---- memory ---- */

enum { N_TENSORS = 4 };

static void list_tensors(struct tensor *list[N_TENSORS], struct pass *p)
{
    struct tensor *const all[N_TENSORS] = { &p->ids, &p->targets, &p->starts, &p->loss };
    for (int i = 0; i < N_TENSORS; i++) {
        list[i] = all[i];
        all[i]->cols = 1;
    }
}

/* A pass with the sizes of its memory, but none of it. */
static bool plan(struct pass *p)
{
    const struct config *c = &p->m->config;
    struct tensor *list[N_TENSORS];
    list_tensors(list, p);
    p->kv = (struct kv_cache) { .be = p->be, .config = c };
    p->kv.layers = mem_alloc(c->n_own, sizeof *p->kv.layers);
    for (uint32_t il = 0; p->kv.layers && il < c->n_own; il++) {
        p->kv.layers[il].n_kv_head = c->layers[il].n_kv_head;
        p->kv.layers[il].head_dim = c->layers[il].head_dim;
    }
    if (!p->kv.layers) return false;
    write_tape(p, p->n_max, false, 0);
    if (!p->tape.failed) write_tape(p, p->n_max, true, 1);
    return !p->tape.failed;
}

static uint64_t count_bytes(const struct pass *p)
{
    return tape_memory_bytes(&p->memory) + (uint64_t)N_TENSORS * p->n_max * sizeof(float);
}

uint64_t pass_bytes(const struct model *m, const struct backend *be, uint32_t n_max, bool keep_all)
{
    struct pass p = { .m = m, .be = be, .n_max = n_max, .keep_all = keep_all };
    uint64_t n = plan(&p) ? count_bytes(&p) : UINT64_MAX;
    pass_close(&p);
    return n;
}

enum bz_status pass_open(struct pass *out, const struct model *m, const struct backend *be,
                         uint32_t n_max, bool keep_all, struct bz_err *err)
{
    struct pass p = { .m = m, .be = be, .n_max = n_max, .keep_all = keep_all };
    struct tensor *list[N_TENSORS];
    enum bz_status st = BZ_OK;
    list_tensors(list, &p);
    bool planned = plan(&p), ok = planned && tape_memory_open(&p.memory, be);
    for (int i = 0; ok && i < N_TENSORS; i++) ok = tensor_alloc(be, list[i], n_max, 1);
    if (!planned)
        st = fail(err, BZ_ERR_MEMORY, "not enough memory to plan training on %u tokens", n_max);
    else if (!ok)
        st = fail(err, BZ_ERR_MEMORY, "not enough memory to train on %u tokens: it takes %llu MB",
                  n_max, (unsigned long long)(count_bytes(&p) / 1000000));
    if (st) pass_close(&p);
    else *out = p;
    return st;
}

void pass_close(struct pass *p)
{
    struct tensor *list[N_TENSORS];
    if (!p->m) return;
    list_tensors(list, p);
    for (int i = 0; i < N_TENSORS; i++) tensor_free(p->be, list[i]);
    tape_memory_close(&p->memory, p->be);
    tape_free(&p->tape);
    mem_free(p->kv.layers);
    *p = (struct pass) { 0 };
}

/* ---- running ---- */

void pass_pack(struct run *r, struct pass *p, const int32_t *starts, uint32_t n)
{
    if (starts) {
        p->starts.rows = n;
        op_write(r, &p->starts, 0, starts, n);
    }
    for (uint32_t il = 0; il < p->m->config.n_own; il++)
        p->kv.layers[il].starts = starts ? &p->starts : NULL;
}

void pass_put(struct run *r, struct pass *p, const int32_t *ids, const int32_t *targets, uint32_t n)
{
    p->ids.rows = p->targets.rows = n;
    op_write(r, &p->ids, 0, ids, n);
    op_write(r, &p->targets, 0, targets, n);
}

/* The tape is written anew for each pass: other adapters may have come to the model, which makes
 * their A x wider. */
static void run_tape(struct run *r, struct pass *p, uint32_t n, bool gradients, float weight)
{
    p->ids.rows = p->targets.rows = p->loss.rows = n;
    write_tape(p, n, gradients, weight);
    bool ok = !p->tape.failed && tape_memory_open(&p->memory, r->be) &&
              tape_bind(&p->tape, &p->memory, r->be);
    if (ok) tape_run(&p->tape, r, 0);
    else run_fail(r, BZ_ERR_MEMORY, "not enough memory to train on %u tokens", n);
}

void pass_losses(struct run *r, struct pass *p, uint32_t n)
{
    run_tape(r, p, n, false, 0);
}

void pass_gradients(struct run *r, struct pass *p, uint32_t n, float weight)
{
    run_tape(r, p, n, true, weight);
}
