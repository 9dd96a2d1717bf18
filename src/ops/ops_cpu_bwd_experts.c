/* ops_cpu_bwd_experts.c - the gradients of a router and its experts on the CPU. */
#include <string.h>

#include "ops/ops_cpu_bwd.h"

/* The rows of one expert, packed: x and dx of n_embd; h of gate and up; act = gelu(gate) * up. */
struct expert_rows {
    float *x, *dx, *dy, *gate, *up, *act, *dact, *dgate_up;
    uint32_t *slots; /* row * n_used + place */
    uint32_t n;
};

/* Memory for the busiest expert, which has every row once at most: a row's experts are distinct.
 * False: the run failed. */
static bool expert_rows_open(struct run *r, struct expert_rows *g, uint32_t rows, uint32_t n_embd,
                             uint32_t n_ff)
{
    struct cpu *c = r->be->ctx;
    size_t wide = (size_t)rows * n_embd, inner = (size_t)rows * n_ff;
    float *f = cpu_shared_need(r, &c->gathered, (3 * wide + 6 * inner) * sizeof *f);
    g->slots = f ? cpu_shared_need(r, &c->order, rows * sizeof *g->slots) : NULL;
    if (!g->slots) return false;
    g->x = f, g->dx = g->x + wide, g->dy = g->dx + wide;
    g->gate = g->dy + wide, g->up = g->gate + inner, g->act = g->up + inner;
    g->dact = g->act + inner, g->dgate_up = g->dact + inner;
    return true;
}

/* y = W_mat x and its adapters, for packed rows. */
static void linear_rows_fwd(struct run *r, float *y, uint32_t stride, const float *x, uint32_t n,
                            const struct weight *w, uint64_t mat, const uint32_t *slots)
{
    struct cpu *c = r->be->ctx;
    struct cpu_worker *wk = c->workers;
    for (uint32_t i = 0; i < w->rows; i++) {
        const float *row = cpu_decoded_row(wk, w, mat * w->rows + i);
        if (!row) return;
        for (uint32_t t = 0; t < n; t++)
            y[(size_t)t * stride + i] = (float)dot_f64(row, x + (size_t)t * w->cols, w->cols);
    }
    for (const struct lora *l = w->lora; l; l = l->next) {
        uint32_t rank = l->a.rows;
        float *z = scratch_need(wk, &c->lora, (size_t)n * rank * sizeof *z);
        const float *seen = z ? dropped_rows(c, l, x, n, w->cols, slots, 0) : NULL;
        if (!seen) return;
        for (uint32_t k = 0; k < rank; k++) {
            const float *a = cpu_decoded_row(wk, &l->a, mat * rank + k);
            if (!a) return;
            for (uint32_t t = 0; t < n; t++)
                z[(size_t)t * rank + k] = (float)dot_f64(a, seen + (size_t)t * w->cols, w->cols);
        }
        for (uint32_t o = 0; o < w->rows; o++) {
            const float *b = cpu_decoded_row(wk, &l->b, mat * w->rows + o);
            if (!b) return;
            for (uint32_t t = 0; t < n; t++)
                y[(size_t)t * stride + o] +=
                    l->scale * (float)dot_f64(b, z + (size_t)t * rank, rank);
        }
    }
}

/* Gate and up of the packed rows, and their product. */
static void expert_forward(struct run *r, struct expert_rows *g, const struct experts *e,
                           uint64_t expert, uint32_t n_ff)
{
    if (weight_exists(e->gate_up)) {
        float *both = g->dgate_up; /* not yet in use */
        linear_rows_fwd(r, both, 2 * n_ff, g->x, g->n, e->gate_up, expert, g->slots);
        for (uint32_t t = 0; t < g->n; t++) {
            memcpy(g->gate + (size_t)t * n_ff, both + (size_t)t * 2 * n_ff, n_ff * sizeof(float));
            memcpy(g->up + (size_t)t * n_ff, both + ((size_t)t * 2 + 1) * n_ff,
                   n_ff * sizeof(float));
        }
    } else {
        linear_rows_fwd(r, g->gate, n_ff, g->x, g->n, e->gate, expert, g->slots);
        linear_rows_fwd(r, g->up, n_ff, g->x, g->n, e->up, expert, g->slots);
    }
    for (size_t i = 0; i < (size_t)g->n * n_ff; i++) g->act[i] = gelu_tanh(g->gate[i]) * g->up[i];
}

/* From the gradient of act to those of gate and up, and through them to dx. */
static void expert_backward(struct run *r, struct expert_rows *g, const struct experts *e,
                            uint64_t expert, uint32_t n_ff)
{
    bool fused = weight_exists(e->gate_up);
    float *dgate = g->dgate_up, *dup = fused ? dgate + n_ff : dgate + (size_t)g->n * n_ff;
    size_t stride = fused ? 2 * (size_t)n_ff : n_ff;
    for (uint32_t t = 0; t < g->n; t++)
        for (uint32_t i = 0; i < n_ff; i++) {
            size_t at = (size_t)t * n_ff + i;
            double slope = gelu_slope((double)g->gate[at]);
            dgate[t * stride + i] = (float)((double)g->dact[at] * (double)g->up[at] * slope);
            dup[t * stride + i] = g->dact[at] * gelu_tanh(g->gate[at]);
        }
    if (fused) {
        linear_rows_bwd(r, g->dx, dgate, g->x, NULL, g->n, e->gate_up, expert, g->slots);
    } else {
        linear_rows_bwd(r, g->dx, dgate, g->x, NULL, g->n, e->gate, expert, g->slots);
        linear_rows_bwd(r, g->dx, dup, g->x, NULL, g->n, e->up, expert, g->slots);
    }
}

/* Which rows chose this expert, with what they bring. */
static void gather_expert(struct expert_rows *g, const struct routing *routing, uint32_t expert,
                          const struct tensor *x, const struct tensor *dy, const float *scale)
{
    uint32_t n_used = routing->ids.cols, n = x->cols;
    const int32_t *ids = routing->ids.mem;
    g->n = 0;
    for (uint32_t s = 0; s < x->rows * n_used; s++) {
        if ((uint32_t)ids[s] != expert) continue;
        float weight = ((const float *)routing->weights.mem)[s] * (scale ? scale[expert] : 1);
        memcpy(g->x + (size_t)g->n * n, row_f32(x, s / n_used), n * sizeof(float));
        for (uint32_t i = 0; i < n; i++)
            g->dy[(size_t)g->n * n + i] = weight * row_f32(dy, s / n_used)[i];
        g->slots[g->n++] = s;
    }
    memset(g->dx, 0, (size_t)g->n * n * sizeof(float));
}

void cpu_experts_bwd(struct run *r, struct tensor *dx, bool fresh, struct tensor *dweights,
                     const struct tensor *dy, const struct tensor *x, const struct routing *routing,
                     const struct experts *e)
{
    uint32_t n_ff = e->down->cols, n = x->cols, n_used = routing->ids.cols;
    const float *scale = weight_exists(e->scale) ? vec(e->scale) : NULL;
    struct expert_rows g;
    if (!expert_rows_open(r, &g, x->rows, n, n_ff)) return;
    if (fresh) memset(dx->mem, 0, (size_t)dx->rows * dx->cols * sizeof(float));
    for (uint32_t expert = 0; expert < e->down->n_mat && r->status == BZ_OK; expert++) {
        gather_expert(&g, routing, expert, x, dy, scale);
        if (!g.n) continue;
        expert_forward(r, &g, e, expert, n_ff);
        memset(g.dact, 0, (size_t)g.n * n_ff * sizeof(float));
        linear_rows_bwd(r, g.dact, g.dy, g.act, NULL, g.n, e->down, expert, g.slots);
        /* By the weight: down(act) . dy = act . (down' dy), whose weighted form is dact. */
        for (uint32_t k = 0; k < g.n; k++) {
            float w = ((const float *)routing->weights.mem)[g.slots[k]];
            double both = dot_f64(g.act + (size_t)k * n_ff, g.dact + (size_t)k * n_ff, n_ff);
            ((float *)dweights->mem)[g.slots[k]] = w > 0 ? (float)(both / (double)w) : 0;
        }
        expert_backward(r, &g, e, expert, n_ff);
        for (uint32_t k = 0; k < g.n; k++) {
            float *out = row_f32(dx, g.slots[k] / n_used);
            for (uint32_t i = 0; i < n; i++) out[i] += g.dx[(size_t)k * n + i];
        }
    }
    cpu_collect(r);
}

void cpu_route_bwd(struct run *r, struct tensor *dscores, const struct tensor *dweights,
                   const struct routing *routing)
{
    (void)r;
    uint32_t n_used = routing->ids.cols;
    for (uint32_t t = 0; t < dscores->rows; t++) {
        const float *w = row_f32(&routing->weights, t), *dw = row_f32(dweights, t);
        const int32_t *ids = (const int32_t *)routing->ids.mem + (size_t)t * n_used;
        double mean = dot_f64(w, dw, n_used);
        float *out = row_f32(dscores, t);
        memset(out, 0, dscores->cols * sizeof *out);
        for (uint32_t j = 0; j < n_used; j++)
            out[ids[j]] = (float)((double)w[j] * ((double)dw[j] - mean));
    }
}
