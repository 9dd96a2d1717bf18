#include "gpu/draw.h"

#include <string.h>

#include "base/mem.h"
#include "gpu/ops_gpu_impl.h"

enum {
    DRAW_PARTS = 64,  /* shares of the vocabulary */
    DRAW_MOST = 1024, /* the largest top-k that the two-step kernels take */
};

/* ---- buffers ---- */

/* The ids of biases must differ: those of one id add up. Returns how many are left. */
static uint32_t merge_biases(uint32_t *pairs, const struct bz_bias *bias, size_t n)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t at = 0;
        float sum = bias[i].add, old;
        while (at < kept && pairs[2 * at] != (uint32_t)bias[i].id) at++;
        if (at < kept) {
            memcpy(&old, &pairs[2 * at + 1], 4);
            sum += old;
        }
        pairs[2 * at] = (uint32_t)bias[i].id;
        memcpy(&pairs[2 * at + 1], &sum, 4);
        if (at == kept) kept++;
    }
    return kept;
}

enum bz_status gpu_draw_open(struct gpu_draw *out, const struct gpu_draw_options *how,
                             struct bz_err *err)
{
    const struct bz_sampling *p = how->sampling;
    struct gpu_draw d = { .sampling = *p, .n_suppress = (uint32_t)how->n_suppress };
    size_t most = how->n_suppress + 2 * p->n_bias + 4;
    uint32_t *lists = mem_alloc(most, sizeof *lists);
    if (!lists) return fail_memory(err, most * sizeof *lists);
    if (how->n_suppress) memcpy(lists, how->suppress, how->n_suppress * sizeof *lists);
    d.n_bias = merge_biases(lists + how->n_suppress, p->bias, p->n_bias);
    d.sampling.bias = NULL;
    d.sampling.mask = NULL;
    d.lists = gpu_buffer_new((uint32_t)most * 4, GPU_STORAGE);
    gpu_buffer_write(d.lists, 0, lists, (uint32_t)most * 4);
    mem_free(lists);
    d.history = gpu_buffer_new((how->n_ctx + 1) * 4, GPU_STORAGE);
    d.counts = gpu_buffer_new(how->n_vocab * 4, GPU_STORAGE);
    if (how->masked) {
        d.n_mask = divide_up(how->n_vocab, 32);
        d.mask = gpu_buffer_new(d.n_mask * 4, GPU_STORAGE);
    }
    *out = d;
    return BZ_OK;
}

uint64_t gpu_draw_bytes(uint32_t n_ctx, uint32_t n_vocab)
{
    return ((uint64_t)n_ctx + 1) * 4 + (uint64_t)n_vocab * 4 + divide_up(n_vocab, 32) * 4;
}

void gpu_draw_close(struct gpu_draw *d)
{
    if (d->lists) gpu_buffer_free(d->lists);
    if (d->history) gpu_buffer_free(d->history);
    if (d->counts) gpu_buffer_free(d->counts);
    if (d->mask) gpu_buffer_free(d->mask);
    *d = (struct gpu_draw) { 0 };
}

void gpu_draw_mask(const struct gpu_draw *d, const uint32_t *words)
{
    gpu_buffer_write(d->mask, 0, words, d->n_mask * 4);
}

void gpu_draw_history(const struct gpu_draw *d, const int32_t *tokens, uint32_t first, uint32_t n)
{
    if (n) gpu_buffer_write(d->history, first * 4, tokens + first, n * 4);
}

/* ---- dispatches ---- */

static void forbid(struct run *r, const struct gpu_draw *d, struct tensor *logits)
{
    struct sample_mask_params p = { .n = logits->cols };
    struct gpu_binding bind[] = { whole(d->mask), act(logits) };
    gpu_dispatch_op(r, KERNEL_SAMPLE_MASK, &p, bind, COUNT(bind), divide_up(p.n, 256));
}

/* Bias, suppression, penalties: nothing when there are none. */
static void edit(struct run *r, const struct gpu_draw *d, struct tensor *logits)
{
    const struct bz_sampling *s = &d->sampling;
    bool penalties = s->penalty_window && (s->repeat_penalty != 1 || s->frequency_penalty != 0 ||
                                           s->presence_penalty != 0);
    if (!penalties && !d->n_suppress && !d->n_bias) return;
    struct sample_edit_params p = { .n_vocab = logits->cols,
                                    .n_suppress = d->n_suppress,
                                    .n_bias = d->n_bias,
                                    .penalty_window = penalties ? s->penalty_window : 0,
                                    .repeat = s->repeat_penalty,
                                    .frequency = s->frequency_penalty,
                                    .presence = s->presence_penalty };
    struct gpu_binding bind[] = { whole(d->lists), whole(d->history), whole(d->counts),
                                  act(logits) };
    gpu_dispatch_op(r, KERNEL_SAMPLE_EDIT, &p, bind, COUNT(bind), 1);
}

static void best(struct run *r, const struct gpu_draw *d, struct tensor *ids,
                 const struct tensor *logits)
{
    struct gpu_ops *g = ops_of(r);
    struct tensor parts = gpu_scratch(r, SCRATCH_FIRST, DRAW_PARTS, 2);
    struct argmax_part_params p = { .n = logits->cols };
    struct gpu_binding bind[] = { act(logits), act(&parts) };
    struct gpu_constant part_wg = { ARGMAX_PART_WG, gpu_sum_wg(g, 256) };
    struct gpu_constant wg = { ARGMAX_WG, gpu_sum_wg(g, 256) };
    uint32_t n_parts = g->tuning->argmax_parts;
    record_dispatch(&g->rec, KERNEL_ARGMAX_PART, &part_wg, 1, &p, bind, COUNT(bind), n_parts);
    struct argmax_params q = { .n_parts = n_parts, .advance = 1 };
    struct gpu_binding pick[] = { act(&parts), whole(d->history), act(ids),
                                  whole(ops_of(r)->rec.step) };
    record_dispatch(&g->rec, KERNEL_ARGMAX, &wg, 1, &q, pick, COUNT(pick), 1);
}

static void from_k_best(struct run *r, const struct gpu_draw *d, struct tensor *ids,
                        const struct tensor *logits)
{
    uint32_t k = d->sampling.top_k;
    struct tensor parts = gpu_scratch(r, SCRATCH_FIRST, DRAW_PARTS * k, 2);
    struct sample_part_params p = { .n = logits->cols, .k = k };
    struct gpu_binding bind[] = { act(logits), act(&parts) };
    gpu_dispatch_op(r, KERNEL_SAMPLE_PART, &p, bind, COUNT(bind), DRAW_PARTS);
    struct sample_params q = { .n_parts = DRAW_PARTS * k,
                               .k = k,
                               .advance = 1,
                               .top_p = d->sampling.top_p,
                               .min_p = d->sampling.min_p,
                               .temperature = d->sampling.temperature };
    struct gpu_binding pick[] = { act(&parts), whole(d->history), act(ids),
                                  whole(ops_of(r)->rec.step) };
    gpu_dispatch_op(r, KERNEL_SAMPLE, &q, pick, COUNT(pick), 1);
}

static void from_all(struct run *r, const struct gpu_draw *d, struct tensor *ids,
                     const struct tensor *logits)
{
    struct sample_all_params p = { .n = logits->cols,
                                   .top_k = d->sampling.top_k,
                                   .advance = 1,
                                   .top_p = d->sampling.top_p,
                                   .min_p = d->sampling.min_p,
                                   .temperature = d->sampling.temperature };
    struct gpu_binding bind[] = { act(logits), whole(d->history), act(ids),
                                  whole(ops_of(r)->rec.step) };
    gpu_dispatch_op(r, KERNEL_SAMPLE_ALL, &p, bind, COUNT(bind), 1);
}

void gpu_draw_record(struct run *r, const struct gpu_draw *d, bool masked, struct tensor *ids,
                     struct tensor *logits)
{
    uint32_t k = d->sampling.top_k;
    if (masked) forbid(r, d, logits);
    edit(r, d, logits);
    if (d->sampling.temperature <= 0) best(r, d, ids, logits);
    else if (k > 0 && k <= DRAW_MOST) from_k_best(r, d, ids, logits);
    else from_all(r, d, ids, logits);
}
