/* canvas.h - what ends a canvas's step (ops/canvas.h): the head and the sampler's decisions */
#ifndef BEZEL_TESTS_OPS_CASES_CANVAS_H
#define BEZEL_TESTS_OPS_CASES_CANVAS_H

#include "ops_cases/case.h"

/* The bench's canvas of c->rows tokens: random ones, nothing fixed or given, this state. */
static struct act *bench_canvas(struct bench *b, const struct op_case *c,
                                const struct canvas_state *state)
{
    struct canvas *v = &b->canvas;
    canvas_shape(v, c->rows);
    struct act *all = bench_ids(b, v->all.rows, 1, c->out);
    int32_t *words = (int32_t *)(void *)all->v;
    v->all = all->t;
    memset(words, 0, CANVAS_STATE * sizeof *words);
    memcpy(words, state, sizeof *state);
    memset(words + v->n_shown, 0xff, (v->all.rows - v->n_shown) * sizeof *words); /* -1 */
    canvas_views(b->be, v);
    op_write(&b->run, &v->all, 0, words, v->all.rows);
    return all;
}

/* A part of it, as the case made it. */
static int32_t *canvas_words(const struct bench *b, const struct act *all,
                             const struct tensor *part)
{
    return (int32_t *)(void *)all->v + (part->first - b->canvas.state.first);
}

static struct canvas_state case_state(const struct op_case *c)
{
    float t = c->cold > 0 ? c->cold : 1;
    return (struct canvas_state) { .step = c->done,
                                   .key = c->seed * 0x10001u,
                                   .n_steps = c->n_steps,
                                   .n_stable = c->n_stable,
                                   .t_min = 0.4f * t,
                                   .t_max = 0.8f * t,
                                   .entropy_bound = 0.1f,
                                   .confidence = 0.005f };
}

/* ---- the head: cols is the width, out the vocabulary ---- */

/* The same number as canvas_gumbel, from its definition. */
static double formula_gumbel(uint32_t bits)
{
    double w = bits < 1u << 23 ? (bits + 0.5) / 0x1p32 : (bits / 512 + 0.5) / 0x1p23;
    return -log(-log1p(-w));
}

/* One row: soft, then its entropy and picks. */
static void formula_head_row(double *soft, double *entropy, double picks[2], const float *x,
                             const struct canvas_head *h, const struct canvas_state *s, uint32_t t)
{
    uint32_t n = h->head->rows, d = h->table->cols, row_key;
    double *z = malloc(n * sizeof *z), *in = widen(x, h->head->cols), top = -INFINITY, sum = 0;
    double drawn = -INFINITY, share = (s->n_steps - s->step) / (double)s->n_steps;
    double temperature = (double)s->t_min + (double)(s->t_max - s->t_min) * share;
    row_key = rng_mix32(rng_mix32(s->key + 0x9e3779b9u * (s->step + 1)) + 0x9e3779b9u * t);
    formula_linear(z, in, h->head->src->ctx, 0);
    for (uint32_t v = 0; v < n; v++) {
        if (h->cap > 0) z[v] = (double)h->cap * tanh(z[v] / (double)h->cap);
        z[v] /= temperature;
        double g = formula_gumbel(rng_mix32(row_key ^ rng_mix32(v + 0x9e3779b9u)));
        if (z[v] > top) top = z[v], picks[0] = v;
        if (z[v] + g > drawn) drawn = z[v] + g, picks[1] = v;
    }
    for (uint32_t v = 0; v < n; v++) sum += exp(z[v] - top);
    *entropy = 0;
    for (uint32_t i = 0; i < d; i++) soft[i] = 0;
    for (uint32_t v = 0; v < n; v++) {
        double p = exp(z[v] - top) / sum;
        *entropy -= p * (z[v] - top - log(sum));
        for (uint32_t i = 0; i < d; i++)
            soft[i] += (double)h->scale * p * (double)decoded(h->table)[v * d + i];
    }
    free(z);
    free(in);
}

/* keep: the picks alone are results; else the numbers. split: head and table are two. rank and
 * n_lora are of the head. */
static void case_canvas_head(struct bench *b, const struct op_case *c)
{
    const struct canvas_state state = case_state(c);
    struct act *x = bench_random(b, c->rows, c->cols), *soft = bench_blank(b, c->rows, c->cols);
    struct act *entropy = bench_blank(b, c->rows, 1), *picks = bench_blank(b, c->rows, 2);
    struct mat *table = bench_weight(b, c->format, c->cols, c->out, 1);
    struct mat *head = c->split ? bench_weight(b, c->format, c->cols, c->out, 1) : table;
    for (uint32_t i = 0; i < c->n_lora; i++) bench_lora(b, head, c->rank);
    bench_canvas(b, c, &state);
    const struct canvas_head h = { .canvas = &b->canvas,
                                   .head = &head->w,
                                   .table = &table->w,
                                   .cap = c->plain ? 0 : 3,
                                   .scale = 2.5f };
    op_canvas_head(&b->run, &soft->t, &entropy->t, &picks->t, &x->t, &h);
    if (c->keep) bench_result(b, &picks->t, true);
    else bench_result(b, &soft->t, false);
    if (!c->keep) bench_result(b, &entropy->t, false);
    double *want = bench_formula(b), *row = malloc(c->cols * sizeof *row);
    for (uint32_t t = 0; want && t < c->rows; t++) {
        double h_row, picked[2] = { 0, 0 };
        formula_head_row(row, &h_row, picked, x->v + t * c->cols, &h, &state, t);
        if (c->keep) memcpy(want + 2 * t, picked, sizeof picked);
        else memcpy(want + t * c->cols, row, c->cols * sizeof *row);
        if (!c->keep) want[c->rows * c->cols + t] = h_row;
    }
    free(row);
}

/* clang-format off */
static const struct op_case canvas_head_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 339,   17,   64, QUANT_Q8_0, 1e-11, .why = "first step, one row past two groups of eight",
      .out = 300, .n_steps = 48 },
    { 340,   17,   64, QUANT_Q8_0, 0,     .why = "its picks",
      .out = 300, .n_steps = 48, .keep = true },
    { 341,    3,  256, QUANT_Q6_K, 1e-11, .why = "sharp, as in a last step", .out = 1029,
      .n_steps = 48, .done = 47, .cold = 0.1f },
    { 342,    3,  256, QUANT_Q6_K, 0,     .why = "its picks", .out = 1029, .n_steps = 48,
      .done = 47, .cold = 0.1f, .keep = true },
    { 343,    5,   33, F32,        1e-11, .why = "any width, a head of its own, no cap", .out = 65,
      .n_steps = 3, .done = 1, .split = true, .plain = true, .cpu_only = true },
    { 344,    5,   33, F32,        0,     .why = "its picks", .out = 65, .n_steps = 3, .done = 1,
      .split = true, .plain = true, .keep = true, .cpu_only = true },
    { 345,    9,   64, QUANT_Q4_0, 1e-11, .why = "hot: nearly uniform", .out = 5000, .n_steps = 1,
      .cold = 20 },
    { 346,    9,   64, QUANT_Q4_0, 0,     .why = "its draws", .out = 5000, .n_steps = 1,
      .cold = 20, .keep = true },
    { 354,   13,  256, EVERY,      1e-11, .why = "every format", .out = 70, .n_steps = 8 },
    { 355,   33,   96, QUANT_Q5_0, 1e-11, .why = "chunks of 256 tokens, in three shares",
      .out = 1027, .n_steps = 8, .tiling = 1 },
    { 356,   33,   96, QUANT_Q5_0, 0,     .why = "their picks", .out = 1027, .n_steps = 8,
      .tiling = 1, .keep = true },
    { 357,   70,  136, QUANT_BF16, 1e-11, .why = "rows and columns past a tile; two matrices",
      .out = 520, .n_steps = 8, .split = true, .tiling = 1 },
    { 358,   20,   64, QUANT_Q8_0, 1e-11, .why = "adapters on the head, in chunks", .out = 600,
      .n_steps = 8, .n_lora = 2, .rank = 5, .tiling = 1 },
};
/* clang-format on */

/* ---- the step: out is the vocabulary ---- */

/* What the sampler knows of a canvas of n tokens. */
struct step_inputs {
    struct canvas_state s;
    uint32_t n, n_vocab;
    float *entropy;
    int32_t *picks, *ids, *best, *fixed, *draws, *fresh;
};

/* tied: many entropies are alike; broken: some are NaN; split: every third position is fixed, every
 * fourth has a draw and every fifth a random token from a script; same: the likely tokens are those
 * of the step before, and nearly certain. */
static void fill_step(struct bench *b, const struct op_case *c, const struct step_inputs *in)
{
    for (uint32_t i = 0; i < in->n; i++) {
        uint64_t random = rng_next(&b->rng);
        in->entropy[i] = rng_unit(random) * (c->same ? 0.004f : 0.05f);
        if (c->tied) in->entropy[i] = (float)(random % 4) * 0.01f;
        if (c->broken && random % 8 == 0) in->entropy[i] = NAN;
        if (c->split && i % 3 == 1) in->fixed[i] = in->best[i];
        if (c->split && i % 4 == 0) in->draws[i] = (int32_t)(i % in->n_vocab);
        if (c->split && i % 5 == 0) in->fresh[i] = (int32_t)(2 * i % in->n_vocab);
        if (c->same && in->fixed[i] < 0) in->best[i] = in->picks[2 * i];
    }
}

/* The position whose entropy comes next after `last` (-1: the first one): straight from the words,
 * one look at all of them for each. */
static uint32_t formula_next(const float *h, uint32_t n, int64_t last)
{
    uint32_t next = n;
    for (uint32_t i = 0; i < n; i++) {
        float key = isnan(h[i]) ? INFINITY : h[i];
        float best = next == n ? 0 : isnan(h[next]) ? INFINITY : h[next];
        float done = last < 0 ? -1 : isnan(h[last]) ? INFINITY : h[last];
        bool later = key > done || (key == done && i > last);
        if (later && (next == n || key < best)) next = i;
    }
    return next;
}

/* want: ids, best, the bits of the accepted ones, then step, stopped, stable and n_accepted. */
static void formula_step(double *want, const struct step_inputs *in)
{
    struct canvas_state s = in->s;
    uint32_t n = in->n, n_free = 0;
    double *best = want + n, *bits = want + 2 * n, *counts = bits + (n + 31) / 32;
    float *h = malloc(n * sizeof *h), sum = 0;
    bool same = s.step > 0;
    memset(want, 0, (2 * n + (n + 31) / 32) * sizeof *want);
    for (uint32_t i = 0; i < n; i++) {
        best[i] = in->fixed[i] >= 0 ? in->fixed[i] : in->picks[2 * i];
        h[i] = in->fixed[i] >= 0 ? 0 : in->entropy[i];
        n_free += in->fixed[i] < 0;
        same = same && best[i] == in->best[i];
    }
    s.step++;
    for (uint32_t turn = 0, i = formula_next(h, n, -1); turn < n; turn++) {
        uint32_t row = rng_mix32(rng_mix32(s.key + 0x9e3779b9u * s.step) + 0x9e3779b9u * i);
        uint32_t token = rng_mix32(row ^ rng_mix32(0x9e3779b8u)) % in->n_vocab;
        int32_t drawn = in->draws[i] >= 0 ? in->draws[i] : in->picks[2 * i + 1];
        bool accepted = sum <= s.entropy_bound;
        want[i] = in->fresh[i] >= 0 ? in->fresh[i] : (int32_t)token;
        if (accepted) want[i] = in->fixed[i] >= 0 ? in->fixed[i] : drawn;
        if (accepted) bits[i / 32] += exp2(i % 32);
        s.n_accepted += accepted;
        sum += h[i];
        i = formula_next(h, n, i);
    }
    s.stable = same ? s.stable + 1 : 0;
    if (s.stable >= s.n_stable && sum / (float)n_free < s.confidence) s.stopped = CANVAS_STABLE;
    else if (s.step == s.n_steps) s.stopped = CANVAS_STEPS;
    for (uint32_t i = 0; i < (n + 31) / 32; i++)
        bits[i] = (double)(float)(int32_t)(uint32_t)bits[i];
    const double after[] = { s.step, s.stopped, s.stable, s.n_accepted };
    memcpy(counts, after, sizeof after);
    free(h);
}

static void case_canvas_step(struct bench *b, const struct op_case *c)
{
    struct step_inputs in = { .s = case_state(c), .n = c->rows, .n_vocab = c->out };
    in.s.stable = c->same;
    struct act *all = bench_canvas(b, c, &in.s);
    struct act *entropy = bench_blank(b, in.n, 1), *picks = bench_ids(b, in.n, 2, c->out);
    in.entropy = entropy->v;
    in.picks = (int32_t *)(void *)picks->v;
    in.ids = canvas_words(b, all, &b->canvas.ids);
    in.best = canvas_words(b, all, &b->canvas.best);
    in.fixed = canvas_words(b, all, &b->canvas.fixed);
    in.draws = canvas_words(b, all, &b->canvas.draws);
    in.fresh = canvas_words(b, all, &b->canvas.fresh);
    fill_step(b, c, &in);
    op_write(&b->run, &b->canvas.all, 0, all->v, b->canvas.all.rows);
    op_write(&b->run, &entropy->t, 0, entropy->v, in.n);
    op_canvas_step(&b->run, &b->canvas, &entropy->t, &picks->t, c->out);
    bench_result(b, &b->canvas.ids, true);
    bench_result(b, &b->canvas.best, true);
    bench_result(b, &b->canvas.accepted, true);
    struct tensor counts = b->canvas.state;
    counts.rows = 4;
    bench_result(b, &counts, true);
    double *want = bench_formula(b);
    if (want) formula_step(want, &in);
}

/* clang-format off */
static const struct op_case canvas_step_cases[] = {
    /* seed rows cols format    nmse   why this case */
    { 347,  256,    1, F32,        0,     .why = "the first step of many", .out = 1000,
      .n_steps = 48, .n_stable = 1 },
    { 348,   65,    1, F32,        0,     .why = "ties go to the lower position, the last step",
      .out = 40, .n_steps = 5, .done = 4, .n_stable = 1, .tied = true },
    { 349,   64,    1, F32,        0,     .why = "stable and sure: it stops", .out = 5000,
      .n_steps = 48, .done = 7, .n_stable = 2, .same = true },
    { 350,   64,    1, F32,        0,     .why = "stable, but not for long enough", .out = 5000,
      .n_steps = 48, .done = 7, .n_stable = 3, .same = true },
    { 351,  100,    1, F32,        0,     .why = "fixed positions, and tokens of a script",
      .out = 300, .n_steps = 48, .done = 1, .n_stable = 1, .split = true },
    { 352,  100,    1, F32,        0,     .why = "NaN comes last, and never stops a canvas",
      .out = 300, .n_steps = 48, .done = 1, .broken = true, .same = true },
    { 353,    1,    1, F32,        0,     .why = "one position is always accepted", .out = 7,
      .n_steps = 2, .n_stable = 1 },
    { 359,  700,    1, F32,        0,     .why = "more positions than a workgroup has threads",
      .out = 4000, .n_steps = 48, .done = 3, .n_stable = 1, .tied = true },
};
/* clang-format on */

#endif
