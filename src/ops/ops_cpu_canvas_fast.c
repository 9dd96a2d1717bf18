/* ops_cpu_canvas_fast.c - the head of a canvas with threads and SIMD, where its time goes on a CPU.
 *
 * 32 rows at a time: their logits are one matrix product, then each row's statistics are a task,
 * and then the soft embeddings of 8 rows are one, which reads the table once.
 */
#include <string.h>

#include "ops/ops_cpu_optional.h"
#include "ops/ops_cpu_vec.h"

enum { PASS_ROWS = 32, TASK_ROWS = 8 };

struct head_pass {
    struct cpu *cpu;
    const struct canvas_head *h;
    struct tensor z; /* PASS_ROWS x n_vocab: logits, then probabilities */
    struct tensor soft, entropy, picks;
    uint32_t at; /* the row of the canvas that the pass begins with */
};

static void picks_task(void *ctx, uint32_t t, uint32_t worker)
{
    (void)worker;
    const struct head_pass *p = ctx;
    uint32_t row = p->at + t;
    cpu_canvas_picks(p->h, row_f32(&p->z, t), row, row_f32(&p->entropy, row),
                     (int32_t *)p->picks.mem + (size_t)2 * row);
}

/* y += scale * x */
BZ_CLONES static void axpy(float *restrict y, const float *restrict x, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += scale * x[i];
}

static void soft_task(void *ctx, uint32_t task, uint32_t worker_index)
{
    const struct head_pass *p = ctx;
    const struct weight *table = p->h->table;
    struct cpu_worker *worker = &p->cpu->workers[worker_index];
    uint32_t first = task * TASK_ROWS, end = first + TASK_ROWS, cols = table->cols;
    if (end > p->z.rows) end = p->z.rows;
    float *row = scratch_need(worker, &worker->scratch[SCRATCH_DECODED], cols * sizeof *row);
    if (!row) return;
    memset(row_f32(&p->soft, p->at + first), 0, (size_t)(end - first) * cols * sizeof *row);
    for (uint32_t v = 0; v < table->rows; v++) {
        const void *bytes = weight_bytes(worker, table, v, 1);
        if (!bytes) return;
        table->fmt->decode(bytes, row, cols);
        for (uint32_t t = first; t < end; t++) {
            float weight = row_f32(&p->z, t)[v];
            if (weight > 0) axpy(row_f32(&p->soft, p->at + t), row, p->h->scale * weight, cols);
        }
    }
}

static void canvas_head(struct run *r, struct tensor *soft, struct tensor *entropy,
                        struct tensor *picks, const struct tensor *x, const struct canvas_head *h)
{
    struct cpu *c = r->be->ctx;
    const struct canvas_state *s = h->canvas->state.mem;
    uint32_t n_vocab = h->head->rows;
    struct head_pass p = { .cpu = c, .h = h, .soft = *soft, .entropy = *entropy, .picks = *picks };
    if (s->stopped) return;
    uint32_t most = x->rows < PASS_ROWS ? x->rows : PASS_ROWS;
    p.z = (struct tensor) { .cols = n_vocab, .size = (uint64_t)most * n_vocab };
    p.z.mem = scratch_need(c->workers, &c->hidden, (size_t)most * n_vocab * sizeof(float));
    cpu_collect(r);
    if (!p.z.mem) return;
    for (; p.at < x->rows && !r->status; p.at += most) {
        uint32_t n = x->rows - p.at < most ? x->rows - p.at : most;
        struct tensor rows = *x;
        rows.rows = p.z.rows = n;
        rows.mem = row_f32(x, p.at);
        r->be->linear(r, &p.z, &rows, h->head);
        if (!run_goes_on(r)) return; /* each half takes a second where the vocabulary is large */
        pool_run(c->pool, picks_task, &p, n);
        pool_run(c->pool, soft_task, &p, (n + TASK_ROWS - 1) / TASK_ROWS);
        if (!run_goes_on(r)) return;
        cpu_collect(r);
    }
}

const struct optional_ops cpu_canvas_fast = {
    .attend_masked = cpu_attend_masked_fast,
    .canvas_head = canvas_head,
    .canvas_step = cpu_canvas_step,
};
