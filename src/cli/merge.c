/* merge.c - `bezel merge`: a model with an adapter added into its weights, W + s B A, as a new file.
 *
 * Tensors keep their formats, so what an adapter adds is rounded like the rest; formats that Bezel only
 * reads become Q8_0. Rows are decoded, changed and encoded one at a time.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "io/adapter.h"
#include "io/gguf_write.h"
#include "io/locate.h"
#include "quant/quant.h"

struct merge {
    const struct gguf *g;
    const struct adapter *adapter;
    float user_scale;
    struct gguf_writer *w;
    uint8_t *bytes, *encoded;
    float *row;
    size_t room; /* of bytes and encoded; row has as many floats */
    size_t n_merged;
};

static const struct adapter_target *target_of(const struct merge *m, const struct gguf_tensor *t)
{
    for (size_t i = 0; i < m->adapter->n_targets; i++)
        if (str_is(t->name, m->adapter->targets[i].name)) return &m->adapter->targets[i];
    return NULL;
}

/* The format of a changed tensor: its own, where it can be written. */
static const struct quant_format *format_after(const struct gguf_tensor *t)
{
    const struct quant_format *f = quant_find(t->type);
    return f && !f->encode ? quant_find(QUANT_Q8_0) : f;
}

static enum bz_status check_target(const struct merge *m, const struct adapter_target *a,
                                   struct bz_err *err)
{
    for (uint64_t i = 0; i < m->g->n_tensors; i++) {
        const struct gguf_tensor *t = &m->g->tensors[i];
        if (!str_is(t->name, a->name)) continue;
        if (t->ne[0] != a->n_in || t->ne[1] != a->n_out || t->ne[2] != a->n_expert)
            return fail(err, BZ_ERR_FORMAT, "the adapter's %s has another shape than the model's",
                        a->name);
        if (!format_after(t) || t->ne[0] % format_after(t)->block)
            return fail(err, BZ_ERR_UNSUPPORTED, "%s is %s, which this build cannot change",
                        a->name, quant_type_name(t->type));
        return BZ_OK;
    }
    return fail(err, BZ_ERR_NOT_FOUND, "the model has no tensor %s", a->name);
}

static enum bz_status copy_tensor(struct merge *m, const struct gguf_tensor *t, struct bz_err *err)
{
    for (uint64_t at = 0; at < t->n_bytes;) {
        size_t n = t->n_bytes - at < m->room ? (size_t)(t->n_bytes - at) : m->room;
        enum bz_status st = source_read(&m->g->sources[t->shard], t->offset + at, m->bytes, n, err);
        if (st) return st;
        gguf_put_data(m->w, m->bytes, n);
        at += n;
    }
    return BZ_OK;
}

/* Row i (of all experts counted through) += s * sum over k of B[i][k] A[k]. */
static void add_delta(const struct merge *m, const struct adapter_target *a, uint64_t i)
{
    const float *b = a->b + i * a->rank;
    const float *rows = a->a + i / a->n_out * a->rank * a->n_in; /* this expert's A */
    for (uint32_t j = 0; j < a->n_in; j++) {
        double sum = 0;
        for (uint32_t k = 0; k < a->rank; k++) sum += (double)b[k] * (double)rows[k * a->n_in + j];
        m->row[j] += (float)(sum * (double)a->scale * (double)m->user_scale);
    }
}

static enum bz_status merge_tensor(struct merge *m, const struct gguf_tensor *t,
                                   const struct adapter_target *a, struct bz_err *err)
{
    const struct quant_format *from = quant_find(t->type), *to = format_after(t);
    size_t n_from = quant_row_bytes(from, a->n_in), n_to = quant_row_bytes(to, a->n_in);
    for (uint64_t i = 0; i < (uint64_t)a->n_out * a->n_expert; i++) {
        enum bz_status st =
            source_read(&m->g->sources[t->shard], t->offset + i * n_from, m->bytes, n_from, err);
        if (st) return st;
        from->decode(m->bytes, m->row, a->n_in);
        add_delta(m, a, i);
        to->encode(m->row, m->encoded, a->n_in);
        gguf_put_data(m->w, m->encoded, n_to);
    }
    m->n_merged++;
    return BZ_OK;
}

static enum bz_status put_names(struct merge *m, struct bz_err *err)
{
    for (uint64_t i = 0; i < m->g->n_tensors; i++) {
        const struct gguf_tensor *t = &m->g->tensors[i];
        char *name = mem_copy_str(t->name.p, t->name.n);
        if (!name) return fail_memory(err, t->name.n);
        uint32_t type = target_of(m, t) ? (uint32_t)format_after(t)->id : t->type;
        gguf_put_tensor(m->w, name, type, t->n_dims, t->ne);
        mem_free(name);
    }
    return BZ_OK;
}

static enum bz_status write_merged(struct merge *m, const char *path, struct bz_err *err)
{
    enum bz_status st = BZ_OK;
    for (size_t i = 0; i < m->adapter->n_targets && st == BZ_OK; i++) {
        const struct adapter_target *a = &m->adapter->targets[i];
        if ((size_t)a->n_in * sizeof(float) > m->room) m->room = (size_t)a->n_in * sizeof(float);
        st = check_target(m, a, err);
    }
    m->bytes = mem_alloc(m->room, 1);
    m->encoded = mem_alloc(m->room, 1);
    m->row = mem_alloc(m->room, 1);
    if (st == BZ_OK && !(m->bytes && m->encoded && m->row)) st = fail_memory(err, m->room);
    if (st == BZ_OK) st = gguf_writer_open(&m->w, path, err);
    if (st == BZ_OK) {
        for (uint64_t i = 0; i < m->g->n_kv; i++) gguf_put_kv(m->w, &m->g->kvs[i]);
        st = put_names(m, err);
        for (uint64_t i = 0; i < m->g->n_tensors && st == BZ_OK; i++) {
            const struct gguf_tensor *t = &m->g->tensors[i];
            const struct adapter_target *a = target_of(m, t);
            st = a ? merge_tensor(m, t, a, err) : copy_tensor(m, t, err);
        }
        if (st) gguf_writer_abort(m->w);
        else st = gguf_writer_finish(m->w, err);
    }
    mem_free(m->bytes);
    mem_free(m->encoded);
    mem_free(m->row);
    return st;
}

int cmd_merge(int argc, char **argv)
{
    const char *args[3], *store = NULL;
    double scale = 1;
    bool force = false;
    const struct cli_option options[] = {
        { "--scale", "S", "the adapter's strength; default 1", CLI_F64, &scale, NULL },
        { "--store", "DIR", "Ollama store; default where Ollama keeps it", CLI_STR, &store, NULL },
        { "--force", NULL, "replace a file that exists", CLI_FLAG, &force, NULL },
    };
    const struct cli_command c = {
        "merge",
        "MODEL ADAPTER OUT [options]",
        "Write a model with a LoRA adapter (GGUF or PEFT) added into its weights. They keep their\n"
        "formats, so quantised ones round what is added; an adapter beside its model does not.",
        options,
        sizeof options / sizeof *options,
        3,
        3,
    };
    int code;
    struct bz_err err = { "" };
    struct located in = { 0 };
    struct adapter adapter = { 0 };
    if (cli_parse(&c, argc, argv, args, &code) < 0) return code;
    if (!force && access(args[2], F_OK) == 0)
        return cli_misuse(&c, "%s exists; --force replaces it", args[2]);
    enum bz_status st = locate_open(&in, args[0], store, &err);
    if (st) return cli_fail(&c, &err);
    st = adapter_open_file(&adapter, args[1], &err);
    struct merge m = {
        .g = &in.gguf, .adapter = &adapter, .user_scale = (float)scale, .room = 1 << 20
    };
    if (st == BZ_OK) st = write_merged(&m, args[2], &err);
    if (st == BZ_OK) printf("%s: %zu tensors changed\n", args[2], m.n_merged);
    adapter_close(&adapter);
    locate_close(&in);
    return st ? cli_fail(&c, &err) : CLI_OK;
}
