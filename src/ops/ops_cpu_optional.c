/* ops_cpu_optional.c - the reference of the ops that text does not use: one obvious loop per op,
 * sums in double. */
#include <math.h>
#include <string.h>

#include "ops/ops_cpu_optional.h"

/* ---- attention ---- */

/* Numbers [at, at + n) of the s-th key or value that a row sees: first the cache, then `own`. */
static const float *seen_numbers(const struct tensor *cache, const struct tensor *own,
                                 struct seen seen, uint32_t s, size_t at, uint32_t n, float *wide)
{
    if (s >= seen.n) return row_f32(own, s - seen.n) + at;
    return kv_numbers(cache, (seen.first + s) % cache->rows, at, n, wide);
}

/* One query head; `at` is where its keys begin in a row. */
static void attend_head(double *out, float *wide, const float *q, const struct attention *a,
                        struct seen seen, size_t at, uint32_t head_dim)
{
    const struct tensor *keys = a->kv ? &a->kv->k : NULL, *values = a->kv ? &a->kv->v : NULL;
    uint32_t n = seen.n + (a->k ? a->k->rows : 0);
    double top = -INFINITY, total = 0;
    for (uint32_t s = 0; s < n; s++) {
        const float *k = seen_numbers(keys, a->k, seen, s, at, head_dim, wide);
        top = fmax(top, (double)a->scale * dot_f64(q, k, head_dim));
    }
    for (uint32_t i = 0; i < head_dim; i++) out[i] = 0;
    for (uint32_t s = 0; s < n; s++) {
        const float *k = seen_numbers(keys, a->k, seen, s, at, head_dim, wide);
        double p = exp((double)a->scale * dot_f64(q, k, head_dim) - top);
        const float *v = seen_numbers(values, a->v, seen, s, at, head_dim, wide);
        for (uint32_t i = 0; i < head_dim; i++) out[i] += p * (double)v[i];
        total += p;
    }
    for (uint32_t i = 0; i < head_dim; i++) out[i] /= total;
}

void cpu_attend_masked(struct run *r, struct tensor *y, const struct tensor *q,
                       const struct attention *a, uint32_t pos)
{
    struct cpu *c = r->be->ctx;
    uint32_t head_dim = q->cols / a->n_head;
    uint32_t n_kv_head = a->kv ? a->kv->n_kv_head : a->k->cols / head_dim;
    size_t n_bytes = head_dim * (sizeof(double) + sizeof(float));
    double *out = scratch_need(c->workers, &c->workers->scratch[SCRATCH_SCORES], n_bytes);
    cpu_collect(r);
    if (!out) return;
    float *wide = (float *)(out + head_dim);
    for (uint32_t t = 0; t < q->rows; t++) {
        struct seen seen = seen_by(a, pos, t);
        for (uint32_t h = 0; h < a->n_head; h++) {
            size_t from = (size_t)h * head_dim;
            size_t at = (size_t)(h / (a->n_head / n_kv_head)) * head_dim;
            attend_head(out, wide, row_f32(q, t) + from, a, seen, at, head_dim);
            for (uint32_t i = 0; i < head_dim; i++) row_f32(y, t)[from + i] = (float)out[i];
        }
    }
}

/* ---- bias, clamp, norm ---- */

static void add_bias(struct run *r, struct tensor *x, const struct weight *b)
{
    (void)r;
    for (uint32_t t = 0; t < x->rows; t++)
        for (uint32_t i = 0; i < x->cols; i++) row_f32(x, t)[i] += vec(b)[i];
}

static void clamp(struct run *r, struct tensor *x, float low, float high)
{
    (void)r;
    float *out = x->mem;
    for (uint64_t i = 0; i < (uint64_t)x->rows * x->cols; i++)
        out[i] = out[i] < low ? low : out[i] > high ? high : out[i]; /* NaN stays */
}

static void layer_norm(struct run *r, struct tensor *y, const struct tensor *x,
                       const struct weight *w, const struct weight *b, float eps)
{
    (void)r;
    for (uint32_t t = 0; t < x->rows; t++) {
        const float *in = row_f32(x, t);
        double sum = 0, squares = 0;
        for (uint32_t i = 0; i < x->cols; i++) sum += (double)in[i];
        double mean = sum / x->cols;
        for (uint32_t i = 0; i < x->cols; i++)
            squares += ((double)in[i] - mean) * ((double)in[i] - mean);
        double inverse = 1 / sqrt(squares / x->cols + (double)eps);
        for (uint32_t i = 0; i < x->cols; i++) {
            double scale = weight_exists(w) ? (double)vec(w)[i] : 1;
            double bias = weight_exists(b) ? (double)vec(b)[i] : 0;
            row_f32(y, t)[i] = (float)(((double)in[i] - mean) * inverse * scale + bias);
        }
    }
}

/* ---- rotation by two positions ---- */

static void angles_2d(struct run *r, struct tensor *table, const struct rope *rope,
                      const struct tensor *xy)
{
    (void)r;
    for (uint32_t t = 0; t < xy->rows; t++)
        for (uint32_t axis = 0; axis < 2; axis++) {
            int32_t at = ((const int32_t *)xy->mem)[2 * t + axis];
            float *cosine = row_f32(table, t) + (size_t)axis * 2 * rope->n_pair;
            for (uint32_t i = 0; i < rope->n_pair; i++) {
                double angle = at * pow((double)rope->base, -2.0 * i / rope->head_dim);
                if (rope->div) angle /= (double)rope->div[i];
                cosine[i] = (float)cos(angle);
                cosine[rope->n_pair + i] = (float)sin(angle);
            }
        }
}

/* A half of a head: its pairs (i, i + size / 2). */
static void rotate(float *u, const float *cosine, uint32_t n_pair, uint32_t size)
{
    for (uint32_t i = 0; i < n_pair; i++) {
        float a = u[i], b = u[i + size / 2], sine = cosine[n_pair + i];
        u[i] = a * cosine[i] - b * sine;
        u[i + size / 2] = a * sine + b * cosine[i];
    }
}

static void rope_2d(struct run *r, struct tensor *x, const struct tensor *table, uint32_t n_head)
{
    (void)r;
    uint32_t size = x->cols / n_head / 2, n_pair = table->cols / 4;
    for (uint32_t t = 0; t < x->rows; t++)
        for (uint32_t half = 0; half < 2 * n_head; half++)
            rotate(row_f32(x, t) + (size_t)half * size,
                   row_f32(table, t) + (size_t)(half % 2) * 2 * n_pair, n_pair, size);
}

/* ---- pictures and signals ---- */

/* The window whose first point is (x0, y0), which pad may have put outside of the picture. */
static void unfold_one(float *out, const struct tensor *x, const struct conv *c, int64_t x0,
                       int64_t y0)
{
    int64_t width = c->width, height = x->rows / c->width;
    for (uint32_t channel = 0; channel < x->cols; channel++)
        for (int64_t py = y0; py < y0 + c->y.k; py++)
            for (int64_t px = x0; px < x0 + c->x.k; px++) {
                bool inside = px >= 0 && px < width && py >= 0 && py < height;
                *out++ = inside ? row_f32(x, (uint32_t)(py * width + px))[channel] : 0;
            }
}

static void unfold(struct run *r, struct tensor *y, const struct tensor *x, const struct conv *c)
{
    (void)r;
    uint32_t nx = conv_count(&c->x, c->width);
    for (uint32_t t = 0; t < y->rows; t++) {
        int64_t x0 = (int64_t)(t % nx) * c->x.stride - c->x.pad;
        int64_t y0 = (int64_t)(t / nx) * c->y.stride - c->y.pad;
        unfold_one(row_f32(y, t), x, c, x0, y0);
    }
}

/* y's column c, by the taps of its channel. */
static void convolve(struct tensor *y, const struct tensor *x, const float *taps, uint32_t k,
                     uint32_t c)
{
    for (uint32_t t = 0; t < x->rows; t++) {
        double sum = 0;
        for (uint32_t j = t + 1 < k ? k - 1 - t : 0; j < k; j++)
            sum += (double)taps[j] * (double)row_f32(x, t + 1 + j - k)[c];
        row_f32(y, t)[c] = (float)sum;
    }
}

static void conv_depthwise(struct run *r, struct tensor *y, const struct tensor *x,
                           const struct weight *w)
{
    struct cpu *c = r->be->ctx;
    struct cpu_worker *worker = c->workers;
    size_t n_bytes = w->cols * sizeof(float);
    float *taps = scratch_need(worker, &worker->scratch[SCRATCH_DECODED], n_bytes);
    for (uint32_t i = 0; taps && i < w->rows; i++) {
        const void *bytes = weight_bytes(worker, w, i, 1);
        if (!bytes) break;
        w->fmt->decode(bytes, taps, w->cols);
        convolve(y, x, taps, w->cols, i);
    }
    cpu_collect(r);
}

static void pool(struct run *r, struct tensor *y, const struct tensor *x, uint32_t width,
                 uint32_t k)
{
    (void)r;
    for (uint32_t t = 0; t < y->rows; t++) {
        uint32_t x0 = t % (width / k) * k, y0 = t / (width / k) * k;
        for (uint32_t i = 0; i < x->cols; i++) {
            double sum = 0;
            for (uint32_t j = 0; j < k * k; j++)
                sum += (double)row_f32(x, (y0 + j / k) * width + x0 + j % k)[i];
            row_f32(y, t)[i] = (float)(sum / (k * k));
        }
    }
}

const struct optional_ops cpu_optional = {
    .attend_masked = cpu_attend_masked,
    .add_bias = add_bias,
    .clamp = clamp,
    .layer_norm = layer_norm,
    .angles_2d = angles_2d,
    .rope_2d = rope_2d,
    .unfold = unfold,
    .conv_depthwise = conv_depthwise,
    .pool = pool,
    .canvas_head = cpu_canvas_head,
    .canvas_step = cpu_canvas_step,
};
