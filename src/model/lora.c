#include "model/lora.h"

#include "base/mem.h"

struct lora_node {
    struct lora lora; /* what the ops see */
    struct source a_bytes, b_bytes;
    struct weight *where; /* NULL: not hung on yet, or inert */
    float own_scale;
};

_Static_assert((int)ADAPTER_ENCODER == (int)LORA_TEXT && (int)ADAPTER_DECODER == (int)LORA_CANVAS,
               "the passes of files are those of runs");

static enum bz_status check_fit(const struct adapter_target *t, const struct weight *w,
                                struct bz_err *err)
{
    enum bz_status st = adapter_check_shape(t, w->cols, w->rows, w->n_mat, err);
    if (st) return st;
    if (t->rank > LORA_MAX_RANK)
        return fail(err, BZ_ERR_UNSUPPORTED, "the adapter's %s has rank %u; the most is %d",
                    t->name, t->rank, LORA_MAX_RANK);
    return BZ_OK;
}

/* One factor as a weight: n_mat matrices of rows x cols floats, in memory. */
static enum bz_status make_weight(struct weight *w, struct source *bytes, const char *name,
                                  const float *data, uint32_t rows, uint32_t cols, uint32_t n_mat,
                                  struct bz_err *err)
{
    size_t n_bytes = (size_t)rows * cols * n_mat * sizeof *data;
    enum bz_status st = source_open_memory(bytes, name, data, n_bytes, err);
    if (st) return st;
    *w = (struct weight) {
        .fmt = quant_find(QUANT_F32), .cols = cols, .rows = rows, .n_mat = n_mat, .src = bytes
    };
    return BZ_OK;
}

static enum bz_status prepare(struct lora_node *node, const struct adapter_target *t,
                              struct model *m, struct bz_err *err)
{
    enum bz_status st = model_find_adaptable(m, str_of(t->name), &node->where, err);
    if (st || !node->where) return st;
    if (t->pass != ADAPTER_BOTH && !m->config.canvas.n_canvas)
        return fail(err, BZ_ERR_FORMAT,
                    "the adapter is for a diffusion model: it changes %s in one of two passes",
                    t->name);
    st = check_fit(t, node->where, err);
    node->own_scale = t->scale;
    node->lora.pass = (enum lora_pass)t->pass;
    if (st == BZ_OK)
        st = make_weight(&node->lora.a, &node->a_bytes, t->name, t->a, t->rank, t->n_in,
                         t->n_expert, err);
    if (st == BZ_OK)
        st = make_weight(&node->lora.b, &node->b_bytes, t->name, t->b, t->n_out, t->rank,
                         t->n_expert, err);
    return st;
}

static void set_scales(struct attached *a, float user_scale)
{
    for (size_t i = 0; i < a->n_nodes; i++)
        a->nodes[i].lora.scale = a->nodes[i].own_scale * user_scale;
}

static void release(struct attached *a)
{
    lora_forget_bytes(a);
    mem_free(a->nodes);
    *a = (struct attached) { 0 };
}

static enum bz_status tell(const struct backend *be, struct weight *w, struct bz_err *err)
{
    return be->adapt ? be->adapt(be->ctx, w, err) : BZ_OK;
}

/* Remove the first n nodes from their weights. The backend keeps a subset, so it cannot fail. */
static void unhang(struct attached *a, size_t n, const struct backend *be)
{
    struct bz_err err;
    for (size_t i = 0; i < n; i++) {
        struct lora_node *node = &a->nodes[i];
        if (!node->where) continue;
        const struct lora **link = &node->where->lora;
        while (*link != &node->lora) link = (const struct lora **)&(*link)->next;
        *link = node->lora.next;
        tell(be, node->where, &err);
    }
}

/* All nodes onto their weights, or none. */
static enum bz_status hang(struct attached *a, const struct backend *be, struct bz_err *err)
{
    enum bz_status st = BZ_OK;
    for (size_t i = 0; st == BZ_OK && i < a->n_nodes; i++) {
        struct lora_node *node = &a->nodes[i];
        if (!node->where) {
            a->n_inert++;
            continue;
        }
        node->lora.next = node->where->lora;
        node->where->lora = &node->lora;
        st = tell(be, node->where, err);
        if (st) unhang(a, i + 1, be);
    }
    return st;
}

enum bz_status lora_attach(struct attached *out, struct adapter *adapter, float user_scale,
                           struct model *m, const struct backend *be, struct bz_err *err)
{
    struct attached a = { .adapter = *adapter, .n_nodes = adapter->n_targets };
    *adapter = (struct adapter) { 0 };
    a.nodes = mem_alloc(a.n_nodes, sizeof *a.nodes);
    enum bz_status st = a.nodes ? BZ_OK : fail_memory(err, a.n_nodes * sizeof *a.nodes);
    if (!a.nodes) a.n_nodes = 0;
    const char *arch = config_arch(&m->config);
    if (st == BZ_OK && a.adapter.arch[0] && !str_is(str_of(a.adapter.arch), arch))
        st = fail(err, BZ_ERR_FORMAT, "the adapter is for %s; the model is %s", a.adapter.arch,
                  arch);
    for (size_t i = 0; st == BZ_OK && i < a.n_nodes; i++)
        st = prepare(&a.nodes[i], &a.adapter.targets[i], m, err);
    set_scales(&a, user_scale);
    if (st == BZ_OK) st = hang(&a, be, err);
    if (st) {
        release(&a);
        return st;
    }
    *out = a;
    return BZ_OK;
}

void lora_set_scale(struct attached *a, float user_scale, const struct backend *be)
{
    struct bz_err err;
    set_scales(a, user_scale);
    for (size_t i = 0; i < a->n_nodes; i++)
        if (a->nodes[i].where) tell(be, a->nodes[i].where, &err); /* cannot fail: nothing is new */
}

void lora_forget_bytes(struct attached *a)
{
    for (size_t i = 0; i < a->n_nodes; i++) {
        source_close(&a->nodes[i].a_bytes);
        source_close(&a->nodes[i].b_bytes);
    }
    adapter_close(&a->adapter);
}

void lora_detach(struct attached *a, const struct backend *be)
{
    unhang(a, a->n_nodes, be);
    release(a);
}
