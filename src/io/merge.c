/* merge.c - see merge.h. Rows are decoded, changed and encoded one at a time. */
#include "io/merge.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "quant/quant.h"

#define WINDOW ((size_t)4 << 20)

/* How far through the model: a tensor, and bytes of it. */
struct place {
    uint64_t tensor, at;
};

struct merge {
    const struct gguf *g;
    const struct adapter_target **targets; /* one a tensor, NULL where it stays as it is */
    float scale;
    struct gguf_writer *w;
    struct place asked, given;
    uint8_t *encoded; /* a row */
    float *row;       /* its numbers */
    double *delta;    /* what is added to them */
    size_t n_changed;
};

/* The format of a changed tensor: its own, where it can be written. */
static const struct quant_format *format_after(const struct gguf_tensor *t)
{
    const struct quant_format *f = quant_find(t->type);
    return f && !f->encode ? quant_find(QUANT_Q8_0) : f;
}

/* ---- does the adapter fit? ---- */

/* Keys and values of layers that read another's cache: such tensors may be absent, without
 * effect. */
static bool is_inert(const struct gguf *g, const char *name)
{
    uint64_t n_layer, n_shared;
    char *rest;
    if (strncmp(name, "blk.", 4) != 0) return false;
    unsigned long layer = strtoul(name + 4, &rest, 10);
    if (strcmp(rest, ".attn_k.weight") != 0 && strcmp(rest, ".attn_v.weight") != 0) return false;
    return gguf_get_u64(g, "gemma4.block_count", &n_layer) &&
           gguf_get_u64(g, "gemma4.attention.shared_kv_layers", &n_shared) && n_shared <= n_layer &&
           layer >= n_layer - n_shared && layer < n_layer;
}

static enum bz_status take_target(struct merge *m, const struct adapter_target *a,
                                  struct bz_err *err)
{
    const struct gguf_tensor *t = gguf_tensor_find(m->g, a->name);
    if (a->pass != ADAPTER_BOTH)
        return fail(
            err, BZ_ERR_UNSUPPORTED,
            "the adapter changes %s in the %s alone; the other pass has the same weight, so "
            "it cannot be merged",
            a->name, a->pass == ADAPTER_ENCODER ? "encoder" : "decoder");
    if (!t && is_inert(m->g, a->name)) return BZ_OK;
    if (!t) return fail(err, BZ_ERR_NOT_FOUND, "the model has no tensor %s", a->name);
    if (t->ne[3] != 1)
        return fail(err, BZ_ERR_FORMAT, "%s has four dimensions, which no adapter has", a->name);
    enum bz_status st = adapter_check_shape(a, t->ne[0], t->ne[1], t->ne[2], err);
    if (st) return st;
    if (!format_after(t) || t->ne[0] % format_after(t)->block)
        return fail(err, BZ_ERR_UNSUPPORTED, "%s is %s, which this build cannot change", a->name,
                    quant_type_name(t->type));
    m->targets[t - m->g->tensors] = a;
    m->n_changed++;
    return BZ_OK;
}

static enum bz_status take_adapter(struct merge *m, const struct adapter *a, struct bz_err *err)
{
    struct str arch;
    size_t widest = 0;
    if (a->arch[0] && gguf_get_str(m->g, "general.architecture", &arch) && !str_is(arch, a->arch))
        return fail(err, BZ_ERR_FORMAT, "the adapter is for %s; the model is %.*s", a->arch,
                    STR_ARG(arch));
    for (size_t i = 0; i < a->n_targets; i++) {
        enum bz_status st = take_target(m, &a->targets[i], err);
        if (st) return st;
        if (a->targets[i].n_in > widest) widest = a->targets[i].n_in;
    }
    if (!m->n_changed) return fail(err, BZ_ERR_FORMAT, "the adapter changes nothing in this model");
    m->row = mem_alloc(widest, sizeof *m->row);
    m->encoded = mem_alloc(widest, sizeof *m->row); /* no format is wider */
    m->delta = mem_alloc(widest, sizeof *m->delta);
    return m->row && m->encoded && m->delta ? BZ_OK : fail_memory(err, widest * 16);
}

/* ---- the new file's header ---- */

static enum bz_status put_header(struct merge *m, struct bz_err *err)
{
    for (uint64_t i = 0; i < m->g->n_kv; i++) gguf_put_kv(m->w, &m->g->kvs[i]);
    for (uint64_t i = 0; i < m->g->n_tensors; i++) {
        const struct gguf_tensor *t = &m->g->tensors[i];
        char *name = mem_copy_str(t->name.p, t->name.n);
        if (!name) return fail_memory(err, t->name.n);
        uint32_t type = m->targets[i] ? (uint32_t)format_after(t)->id : t->type;
        gguf_put_tensor(m->w, name, type, t->n_dims, t->ne);
        mem_free(name);
    }
    return BZ_OK;
}

enum bz_status merge_open(struct merge **out, const struct gguf *g, const struct adapter *a,
                          float scale, struct gguf_writer *w, struct bz_err *err)
{
    struct merge *m = mem_alloc(1, sizeof *m);
    if (!m) return fail_memory(err, sizeof *m);
    *m = (struct merge) { .g = g, .scale = scale, .w = w };
    m->targets = mem_alloc((size_t)g->n_tensors, sizeof *m->targets);
    enum bz_status st = m->targets ? take_adapter(m, a, err)
                                   : fail_memory(err, (size_t)g->n_tensors * sizeof *m->targets);
    if (st == BZ_OK) st = put_header(m, err);
    if (st) {
        merge_close(m);
        return st;
    }
    *out = m;
    return BZ_OK;
}

void merge_close(struct merge *m)
{
    if (!m) return;
    mem_free(m->targets);
    mem_free(m->row);
    mem_free(m->encoded);
    mem_free(m->delta);
    mem_free(m);
}

size_t merge_n_changed(const struct merge *m)
{
    return m->n_changed;
}

/* ---- windows ---- */

static size_t row_bytes(const struct merge *m, uint64_t tensor)
{
    const struct gguf_tensor *t = &m->g->tensors[tensor];
    return quant_row_bytes(quant_find(t->type), (size_t)t->ne[0]);
}

/* The bytes of the window at p; p moves on to the next window. Windows of a changed tensor are
 * whole rows. */
static size_t step(const struct merge *m, struct place *p)
{
    const struct gguf_tensor *t = &m->g->tensors[p->tensor];
    size_t most = WINDOW;
    if (m->targets[p->tensor]) {
        size_t row = row_bytes(m, p->tensor);
        most = row < most ? most / row * row : row;
    }
    uint64_t left = t->n_bytes - p->at;
    size_t n = left < most ? (size_t)left : most;
    p->at += n;
    if (p->at == t->n_bytes) *p = (struct place) { p->tensor + 1, 0 };
    return n;
}

bool merge_next(struct merge *m, struct merge_window *out)
{
    struct place at = m->asked;
    if (at.tensor == m->g->n_tensors || gguf_writer_failed(m->w)) return false;
    const struct gguf_tensor *t = &m->g->tensors[at.tensor];
    out->src = &m->g->sources[t->shard];
    out->offset = t->offset + at.at;
    out->n_bytes = step(m, &m->asked);
    return true;
}

/* Row i (of all experts counted through) += s * sum over k of B[i][k] A[k]. */
static void add_delta(struct merge *m, const struct adapter_target *a, uint64_t i)
{
    const float *b = a->b + i * a->rank;
    const float *rows = a->a + i / a->n_out * a->rank * a->n_in; /* this expert's A */
    for (uint32_t j = 0; j < a->n_in; j++) m->delta[j] = 0;
    for (uint32_t k = 0; k < a->rank; k++) {
        const float *row = rows + (size_t)k * a->n_in;
        for (uint32_t j = 0; j < a->n_in; j++) m->delta[j] += (double)b[k] * (double)row[j];
    }
    for (uint32_t j = 0; j < a->n_in; j++)
        m->row[j] += (float)(m->delta[j] * (double)a->scale * (double)m->scale);
}

void merge_give(struct merge *m, const void *bytes)
{
    struct place at = m->given;
    const struct adapter_target *a = m->targets[at.tensor];
    size_t n = step(m, &m->given);
    if (!a) {
        gguf_put_data(m->w, bytes, n);
        return;
    }
    const struct gguf_tensor *t = &m->g->tensors[at.tensor];
    const struct quant_format *from = quant_find(t->type), *to = format_after(t);
    size_t n_from = row_bytes(m, at.tensor), n_to = quant_row_bytes(to, a->n_in);
    for (size_t i = 0; i < n / n_from; i++) {
        from->decode((const uint8_t *)bytes + i * n_from, m->row, a->n_in);
        add_delta(m, a, at.at / n_from + i);
        to->encode(m->row, m->encoded, a->n_in);
        gguf_put_data(m->w, m->encoded, n_to);
    }
}
