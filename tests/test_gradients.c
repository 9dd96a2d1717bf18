/* test_gradients.c - the gradient rule of each op, alone: the slope of a loss behind it.
 *
 * The net of an op has three products of one input with trained adapters, then the op, then a loss.
 * Along the gradient of a matrix of an adapter the loss must rise at a speed equal to the
 * gradient's length. Every op of ops.def has such a net, or says that it has no gradient.
 */
#include "ops/ops_bwd.h"
#include "ops_fixture.h"
#include "tape/tape.h"

enum { ROWS = 6, D = 16, SIZE = 8, WORDS = 12, RANK = 2, N_P = 3, N_EXPERT = 4, FF = 12 };

struct net {
    struct bench b;
    struct tape t;
    struct tape_memory memory;
    struct act *x, *targets, *loss;
    struct mat *w[N_P], *frozen, *head, *norm, *head_norm, *scale, *router, *gate, *up, *down;
    struct lora_grad grads[BENCH_LORAS];
    struct kv kv;
    struct rope rope;
    struct value *p[N_P]; /* what the op reads, ROWS x D */
};

/* ---- a net for each op ---- */

static struct value *net_rows(struct net *n)
{
    return tape_rows(&n->t, n->p[0], 2, 3);
}

static struct value *net_linear(struct net *n)
{
    return tape_linear(&n->t, n->p[0], &n->frozen->w);
}

static struct value *net_linear_z(struct net *n)
{
    return tape_linear(&n->t, n->p[0], &n->w[1]->w);
}

static struct value *net_rms_norm(struct net *n)
{
    return tape_rms_norm(&n->t, n->p[0], &n->norm->w);
}

static struct value *net_head_norm(struct net *n)
{
    return tape_head_norm(&n->t, n->p[0], &n->head_norm->w, SIZE);
}

static struct value *net_rope(struct net *n)
{
    struct value *angles = tape_angles(&n->t, &n->rope, 0, ROWS);
    return tape_rope(&n->t, n->p[0], angles, SIZE);
}

static struct value *attend(struct net *n, struct value *q, uint32_t window)
{
    const struct attend a = {
        .kv = &n->kv, .mask = { MASK_CAUSAL, window }, .n_head = D / SIZE, .scale = 1
    };
    return tape_attend(&n->t, q, &a);
}

/* Two layers that share keys and values. */
static struct value *net_self_attend(struct net *n)
{
    tape_kv_write(&n->t, &n->kv, n->p[1], n->p[2]);
    struct value *a = attend(n, n->p[0], 0);
    struct value *q = tape_add(&n->t, n->p[0], a);
    return attend(n, q, 3);
}

static struct value *net_add(struct net *n)
{
    struct value *twice = tape_add(&n->t, n->p[0], n->p[0]);
    return tape_add(&n->t, twice, n->p[1]);
}

static struct value *net_times(struct net *n)
{
    return tape_times(&n->t, n->p[0], -1.5f);
}

static struct value *net_scale(struct net *n)
{
    return tape_scale(&n->t, n->p[0], &n->scale->w);
}

static struct value *net_gelu_mul(struct net *n)
{
    return tape_gelu_mul(&n->t, n->p[0], n->p[1]);
}

static struct value *net_experts(struct net *n)
{
    static const struct weight none;
    const struct experts e = { &none, &n->gate->w, &n->up->w, &n->down->w, &none };
    struct value *scores = tape_linear(&n->t, n->p[0], &n->router->w);
    struct chosen by = tape_route(&n->t, scores, 2);
    return tape_experts(&n->t, n->p[1], by, &e);
}

/* Experts tell whether the weights that they are given are right. */
static struct value *net_route(struct net *n)
{
    return net_experts(n);
}

typedef struct value *(*net_fn)(struct net *n);

static const struct op_net {
    const char *op;
    net_fn net;
} nets[] = {
#define NET(name) { #name, net_##name }
    NET(rows),     NET(linear),      NET(linear_z), NET(rms_norm), NET(head_norm),
    NET(rope),     NET(self_attend), NET(add),      NET(times),    NET(scale),
    NET(gelu_mul), NET(route),       NET(experts),
#undef NET
};

static const struct {
    const char *op, *gradient;
} ops[] = {
#define OP(NAME, name, n_out, in_place, gradient) { #name, #gradient },
#include "tape/ops.def"
#undef OP
};

static net_fn net_of(const char *op)
{
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        if (strcmp(nets[i].op, op) == 0) return nets[i].net;
    return NULL;
}

/* ---- its weights ---- */

static struct mat *trained(struct net *n, uint32_t cols, uint32_t rows, uint32_t n_mat)
{
    struct mat *m = bench_weight(&n->b, QUANT_F32, cols, rows, n_mat);
    struct lora *l = &n->b.loras[n->b.n_loras];
    bench_lora(&n->b, m, RANK);
    struct lora_grad *g = &n->grads[n->b.n_loras - 1];
    *g = (struct lora_grad) { bench_blank(&n->b, n_mat * RANK, cols)->t,
                              bench_blank(&n->b, n_mat * rows, RANK)->t };
    l->scale = 0.5f;
    l->grad = g;
    return m;
}

static void open_net(struct net *n, const struct backend *be)
{
    memset(n, 0, sizeof *n);
    struct bench *b = &n->b;
    bench_open(b, be, true, 3);
    n->x = bench_random(b, ROWS, D);
    n->targets = bench_ids(b, ROWS, 1, WORDS);
    n->loss = bench_blank(b, ROWS, 1);
    for (int i = 0; i < N_P; i++) n->w[i] = trained(n, D, D, 1);
    n->frozen = bench_weight(b, QUANT_F32, D, D, 1);
    n->head = bench_weight(b, QUANT_F32, D, WORDS, 1);
    n->norm = bench_weight(b, QUANT_F32, D, 1, 1);
    n->head_norm = bench_weight(b, QUANT_F32, SIZE, 1, 1);
    n->scale = bench_weight(b, QUANT_F32, 1, 1, 1);
    n->router = bench_weight(b, QUANT_F32, D, N_EXPERT, 1);
    n->gate = trained(n, D, FF, N_EXPERT);
    n->up = bench_weight(b, QUANT_F32, D, FF, N_EXPERT);
    n->down = trained(n, FF, D, N_EXPERT);
    n->kv = (struct kv) { .n_kv_head = D / SIZE, .head_dim = SIZE };
    n->rope = (struct rope) { .base = 100, .head_dim = SIZE, .n_pair = 3 };
}

static void close_net(struct net *n)
{
    tape_free(&n->t);
    tape_memory_close(&n->memory, n->b.be);
    bench_close(&n->b);
}

/* ---- losses and gradients ---- */

struct way {
    bool gradients, keep_all;
};

/* The tape of a net, whose result is `y` numbers a row. The op is a segment between others. */
static void write_net(struct net *n, net_fn net, struct way way)
{
    struct tape *t = &n->t;
    tape_begin(t, EPS, ROWS, ROWS);
    t->max_rows = t->max_out = ROWS;
    t->trains = true;
    struct value *x = tape_input(t, &n->x->t, ROWS);
    tape_checkpoint(t);
    for (int i = 0; i < N_P; i++) n->p[i] = tape_linear(t, x, &n->w[i]->w);
    tape_checkpoint(t);
    struct value *y = net(n);
    n->targets->t.rows = n->loss->t.rows = y->at.rows;
    tape_checkpoint(t);
    y = tape_rms_norm(t, y, &n->norm->w);
    struct value *targets = tape_input(t, &n->targets->t, y->at.rows);
    struct head_loss end = tape_head_loss(t, y, &n->head->w, targets, 5, 1);
    tape_result(t, end.loss, &n->loss->t);
    if (way.gradients) tape_differentiate(t, y, end.dx, way.keep_all);
    tape_finish(t);
    tape_groups(t);
}

static void run_net(struct net *n, net_fn net, struct way way)
{
    const struct backend *be = n->b.be;
    write_net(n, net, way);
    CHECK(tape_place(&n->t, &n->memory) && tape_memory_open(&n->memory, be) &&
          tape_bind(&n->t, &n->memory, be));
    tape_run(&n->t, &n->b.run, 0);
    CHECK_MSG(n->b.run.status == BZ_OK, "%s", n->b.run.err.text);
}

static double loss_of(struct net *n, net_fn net)
{
    double sum = 0;
    run_net(n, net, (struct way) { false, false });
    for (uint32_t i = 0; i < n->loss->t.rows; i++) sum += (double)((float *)n->loss->t.mem)[i];
    return sum;
}

static size_t count(const struct tensor *t)
{
    return (size_t)t->rows * t->cols;
}

/* All gradients from zero. */
static void gradients(struct net *n, net_fn net, bool keep_all)
{
    for (uint32_t i = 0; i < n->b.n_loras; i++) {
        op_zero(&n->b.run, &n->grads[i].a, n->grads[i].a.rows);
        op_zero(&n->b.run, &n->grads[i].b, n->grads[i].b.rows);
    }
    run_net(n, net, (struct way) { true, keep_all });
}

static double length_of(const struct tensor *t)
{
    double sum = 0;
    const float *p = t->mem;
    for (size_t i = 0; i < count(t); i++) sum += (double)p[i] * (double)p[i];
    return sqrt(sum);
}

/* How fast the loss rises along the gradient g, with steps of h. */
static double slope(struct net *n, net_fn net, const struct weight *w, const struct tensor *g,
                    double h)
{
    static const double steps[] = { -2, -1, 1, 2 };
    const float *by = g->mem;
    float *x = (float *)(void *)((struct mat *)w->src->ctx)->bytes;
    double at[4], length = length_of(g);
    float *kept = malloc(count(g) * sizeof *kept);
    memcpy(kept, x, count(g) * sizeof *kept);
    for (int side = 0; side < 4; side++) {
        for (size_t i = 0; i < count(g); i++)
            x[i] = (float)((double)kept[i] + steps[side] * h * (double)by[i] / length);
        at[side] = loss_of(n, net);
    }
    memcpy(x, kept, count(g) * sizeof *kept);
    free(kept);
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h);
}

/* Floats leave a slope three or four digits. A step over the border where a router chooses another
 * expert measures the jump there: then a shorter one is tried. Returns whether there is a
 * gradient. */
static bool check_slope(struct net *n, net_fn net, const char *op, const struct weight *w,
                        const struct tensor *g)
{
    double length = length_of(g), measured = 0, off = INFINITY;
    for (double h = 2e-2; length > 0 && h > 1e-4 && off > 5e-3; h /= 4) {
        measured = slope(n, net, w, g, h);
        off = fabs(measured - length) / (length + 1e-3);
    }
    CHECK_MSG(length == 0 || off <= 5e-3, "%s: the loss rises by %g, the gradient says %g", op,
              measured, length);
    return length > 0;
}

/* What is computed again has the same bits. */
static void check_again(struct net *n, net_fn net, const char *op)
{
    struct net kept;
    open_net(&kept, n->b.be);
    gradients(&kept, net, true);
    for (uint32_t i = 0; i < n->b.n_loras; i++) {
        const struct lora_grad *a = &n->grads[i], *b = &kept.grads[i];
        CHECK_MSG(memcmp(a->a.mem, b->a.mem, count(&a->a) * sizeof(float)) == 0 &&
                      memcmp(a->b.mem, b->b.mem, count(&a->b) * sizeof(float)) == 0,
                  "%s: adapter %u has other gradients when all is kept", op, i);
    }
    close_net(&kept);
}

static void check_op(const struct backend *be, const char *op, net_fn net)
{
    struct net n;
    uint32_t n_seen = 0;
    open_net(&n, be);
    gradients(&n, net, false);
    for (uint32_t i = 0; i < n.b.n_loras; i++) {
        n_seen += check_slope(&n, net, op, &n.b.loras[i].a, &n.grads[i].a);
        n_seen += check_slope(&n, net, op, &n.b.loras[i].b, &n.grads[i].b);
    }
    CHECK_MSG(n_seen >= 2, "%s: no gradient came through", op);
    gradients(&n, net, false);
    check_again(&n, net, op);
    close_net(&n);
}

/* Nothing before the first trained adapter is differentiated, and a frozen net not at all. */
static void check_needed(const struct backend *be)
{
    struct net n;
    open_net(&n, be);
    write_net(&n, net_linear, (struct way) { true, true });
    uint32_t n_linear = 0, n_free = 0;
    for (const struct node *k = n.t.nodes; k; k = k->next) {
        n_linear += k->op == TAPE_LINEAR_BWD;
        n_free += k->op == TAPE_LINEAR_BWD && !k->out[0];
    }
    CHECK(n_linear == 2 && n_free == 1); /* nobody wants the gradient of the input */
    for (uint32_t i = 0; i < n.b.n_loras; i++) n.b.loras[i].grad = NULL;
    write_net(&n, net_linear, (struct way) { false, true });
    uint32_t n_forward = n.t.n_nodes;
    write_net(&n, net_linear, (struct way) { true, true });
    CHECK(n.t.n_nodes == n_forward);
    close_net(&n);
}

/* Memory that runs out at any place ends in a tape that says so. */
static void check_faults(const struct backend *be)
{
    struct net n;
    bool failed = true;
    uint64_t k = 1;
    open_net(&n, be);
    for (; failed; k++) {
        tape_free(&n.t); /* so that it asks for its memory again */
        uint64_t before = mem_count();
        mem_fail_at(k);
        struct tape *t = &n.t;
        tape_begin(t, EPS, ROWS, ROWS);
        t->max_rows = t->max_out = ROWS;
        t->trains = true;
        struct value *x = tape_input(t, &n.x->t, ROWS);
        tape_checkpoint(t);
        for (int i = 0; i < N_P; i++) n.p[i] = tape_linear(t, x, &n.w[i]->w);
        struct value *y = net_self_attend(&n);
        tape_checkpoint(t);
        struct value *targets = tape_input(t, &n.targets->t, ROWS);
        struct head_loss end = tape_head_loss(t, y, &n.head->w, targets, 0, 1);
        tape_differentiate(t, y, end.dx, false);
        failed = mem_count() - before >= k;
        mem_fail_at(0);
        CHECK(t->failed == failed);
    }
    CHECK(k > 2);
    close_net(&n);
}

int main(void)
{
    struct backend cpu, fast;
    struct bz_err err;
    CHECK(cpu_open(&cpu, false, 1, &err) == BZ_OK && cpu_open(&fast, true, 2, &err) == BZ_OK);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        net_fn net = net_of(ops[i].op);
        bool none = strcmp(ops[i].gradient, "none") == 0;
        CHECK_MSG(none == !net, "%s: its gradient is %s, and it has %s net", ops[i].op,
                  ops[i].gradient, net ? "a" : "no");
        TEST("the gradient of an op is the slope of the loss")
        {
            if (!net) continue;
            check_op(&cpu, ops[i].op, net);
            check_op(&fast, ops[i].op, net);
        }
    }
    TEST("what nobody learns from is not differentiated")
    {
        check_needed(&cpu);
    }
    TEST("memory that runs out ends in a tape that says so")
    {
        check_faults(&cpu);
    }
    cpu.close(&cpu);
    fast.close(&fast);
    return check_done();
}
