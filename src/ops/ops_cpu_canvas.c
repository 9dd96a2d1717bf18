/* ops_cpu_canvas.c - the reference of the ops that end a canvas's step. Sums are in double, but for
 * those that decide: the accepted positions depend on f32 sums in a stated order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ops_cpu_optional.h"

/* ---- the head: logits of a few rows at a time ---- */

enum { HEAD_ROWS = 8 };

struct head_pass {
    const struct canvas_head *h;
    struct tensor z; /* HEAD_ROWS x n_vocab: logits, then probabilities */
    double *soft;    /* HEAD_ROWS x table.cols */
    float *decoded;  /* one row of the table */
};

void cpu_canvas_picks(const struct canvas_head *h, float *z, uint32_t row, float *entropy,
                      int32_t picks[2])
{
    const struct canvas_state *s = h->canvas->state.mem;
    uint32_t n = h->head->rows, row_key = canvas_row_key(s->key, s->step + 1, row);
    float cap = h->cap, temperature = canvas_temperature(s), best_drawn = -INFINITY;
    double sum = 0, weighted = 0;
    picks[0] = picks[1] = 0;
    for (uint32_t v = 0; v < n; v++) {
        z[v] = (cap > 0 ? cap * tanhf(z[v] / cap) : z[v]) / temperature;
        float drawn = z[v] + canvas_gumbel(canvas_bits(row_key, v));
        if (z[v] > z[picks[0]]) picks[0] = (int32_t)v;
        if (drawn > best_drawn) best_drawn = drawn, picks[1] = (int32_t)v;
    }
    double top = (double)z[picks[0]];
    for (uint32_t v = 0; v < n; v++) {
        double below = (double)z[v] - top, e = exp(below);
        sum += e;
        weighted += e > 0 ? e * below : 0;
        z[v] = (float)e;
    }
    for (uint32_t v = 0; v < n; v++) z[v] = (float)((double)z[v] / sum);
    *entropy = (float)(log(sum) - weighted / sum);
}

/* soft[i] = sum over v of p_v table[v], of each of the rows. False: the table cannot be read. */
static bool expect_rows(struct run *r, struct head_pass *p, uint32_t rows)
{
    struct cpu *c = r->be->ctx;
    const struct weight *table = p->h->table;
    memset(p->soft, 0, (size_t)rows * table->cols * sizeof *p->soft);
    for (uint32_t v = 0; v < table->rows; v++) {
        const void *bytes = weight_bytes(c->workers, table, v, 1);
        if (!bytes) return false;
        table->fmt->decode(bytes, p->decoded, table->cols);
        for (uint32_t t = 0; t < rows; t++) {
            double weight = (double)row_f32(&p->z, t)[v], *soft = p->soft + (size_t)t * table->cols;
            if (weight == 0) continue;
            for (uint32_t i = 0; i < table->cols; i++) soft[i] += weight * (double)p->decoded[i];
        }
    }
    return true;
}

void cpu_canvas_head(struct run *r, struct tensor *soft, struct tensor *entropy,
                     struct tensor *picks, const struct tensor *x, const struct canvas_head *h)
{
    struct cpu *c = r->be->ctx;
    const struct canvas_state *s = h->canvas->state.mem;
    uint32_t n_vocab = h->head->rows, cols = h->table->cols;
    if (s->stopped) return;
    size_t n_bytes = (size_t)HEAD_ROWS * (n_vocab * sizeof(float) + cols * sizeof(double));
    struct head_pass p = { .h = h };
    p.soft = scratch_need(c->workers, &c->hidden, n_bytes + cols * sizeof(float));
    cpu_collect(r);
    if (!p.soft) return;
    p.z = (struct tensor) { .cols = n_vocab, .size = (uint64_t)HEAD_ROWS * n_vocab };
    p.z.mem = p.soft + (size_t)HEAD_ROWS * cols;
    p.decoded = (float *)p.z.mem + p.z.size;
    for (uint32_t at = 0; at < x->rows && !r->status; at += HEAD_ROWS) {
        uint32_t n = x->rows - at < HEAD_ROWS ? x->rows - at : HEAD_ROWS;
        struct tensor rows = *x;
        rows.rows = p.z.rows = n;
        rows.mem = row_f32(x, at);
        r->be->linear(r, &p.z, &rows, h->head);
        if (!run_goes_on(r)) break;
        for (uint32_t t = 0; t < n && !r->status; t++)
            cpu_canvas_picks(h, row_f32(&p.z, t), at + t, row_f32(entropy, at + t),
                             (int32_t *)picks->mem + 2 * (at + t));
        if (!r->status && !expect_rows(r, &p, n)) break;
        for (uint32_t i = 0; i < n * cols; i++)
            row_f32(soft, at)[i] = (float)((double)h->scale * p.soft[i]);
    }
    cpu_collect(r);
}

/* ---- the step ---- */

/* A position, with what the model thinks of it. */
struct spot {
    float entropy;
    uint32_t row;
    int32_t best, drawn;
};

/* By entropy, then by position; NaN last. */
static int by_entropy(const void *a, const void *b)
{
    const struct spot *x = a, *y = b;
    bool less = x->entropy<y->entropy, more = x->entropy> y->entropy;
    if (isnan(x->entropy) != isnan(y->entropy)) return isnan(x->entropy) ? 1 : -1;
    if (less || more) return less ? -1 : 1;
    return x->row < y->row ? -1 : 1;
}

/* A fixed row is certain of its token. Returns how many rows are free. */
static uint32_t list_spots(struct spot *list, const struct canvas *c, const struct tensor *entropy,
                           const struct tensor *picks)
{
    const int32_t *fixed = c->fixed.mem, *draws = c->draws.mem, *picked = picks->mem;
    uint32_t n_free = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        bool is_fixed = fixed[i] >= 0;
        list[i].row = i;
        list[i].entropy = is_fixed ? 0 : row_f32(entropy, i)[0];
        list[i].best = is_fixed ? fixed[i] : picked[2 * i];
        list[i].drawn = is_fixed ? fixed[i] : draws[i] >= 0 ? draws[i] : picked[2 * i + 1];
        n_free += !is_fixed;
    }
    return n_free;
}

/* The next canvas. Returns the sum of all entropies; `list` is in their order. */
static float accept_spots(struct canvas *c, struct canvas_state *s, const struct spot *list,
                          uint32_t n_vocab)
{
    int32_t *ids = c->ids.mem;
    const int32_t *fresh = c->fresh.mem;
    uint32_t *accepted = c->accepted.mem;
    float before = 0;
    memset(accepted, 0, c->accepted.rows * sizeof *accepted);
    s->n_accepted = 0;
    for (uint32_t k = 0; k < c->n; k++) {
        uint32_t i = list[k].row;
        if (before <= s->entropy_bound) {
            ids[i] = list[k].drawn;
            accepted[i / 32] |= 1u << i % 32;
            s->n_accepted++;
        } else if (fresh[i] >= 0) {
            ids[i] = fresh[i];
        } else {
            ids[i] = (int32_t)canvas_fresh(canvas_row_key(s->key, s->step, i), n_vocab);
        }
        before += list[k].entropy;
    }
    return before;
}

void cpu_canvas_step(struct run *r, struct canvas *c, const struct tensor *entropy,
                     const struct tensor *picks, uint32_t n_vocab)
{
    struct cpu *cpu = r->be->ctx;
    struct canvas_state *s = c->state.mem;
    int32_t *best = c->best.mem;
    if (s->stopped) return;
    struct spot *list = scratch_need(cpu->workers, &cpu->order, c->n * sizeof *list);
    cpu_collect(r);
    if (!list) return;
    s->step++;
    uint32_t n_free = list_spots(list, c, entropy, picks);
    bool same = s->step > 1;
    for (uint32_t i = 0; i < c->n; i++) {
        same = same && best[i] == list[i].best;
        best[i] = list[i].best;
        row_f32(&c->entropy, i)[0] = list[i].entropy;
    }
    qsort(list, c->n, sizeof *list, by_entropy);
    float sum = accept_spots(c, s, list, n_vocab);
    s->mean_entropy = n_free ? sum / (float)n_free : 0;
    s->stable = same ? s->stable + 1 : 0;
    if (s->stable >= s->n_stable && s->mean_entropy < s->confidence) s->stopped = CANVAS_STABLE;
    else if (s->step >= s->n_steps) s->stopped = CANVAS_STEPS;
}

const struct optional_ops cpu_canvas = {
    .attend_masked = cpu_attend_masked,
    .canvas_head = cpu_canvas_head,
    .canvas_step = cpu_canvas_step,
};
