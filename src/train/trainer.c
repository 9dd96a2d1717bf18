/* trainer.c - see trainer.h. */
#include "train/trainer.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/sha256.h"

struct train_options train_defaults(void)
{
    return (struct train_options) {
        .adapter = { .rank = 16, .alpha = 32 },
        .lr = 2e-4f,
        .schedule = SCHEDULE_COSINE,
        .n_batch = 1,
        .beta1 = 0.9f,
        .beta2 = 0.999f,
        .eps = 1e-8f,
        .clip = 1,
    };
}

enum bz_status schedule_find(enum schedule *out, struct str name, struct bz_err *err)
{
    static const char *const names[] = { "constant", "linear", "cosine" };
    for (int i = 0; i < 3; i++)
        if (str_eq(name, str_of(names[i]))) {
            *out = (enum schedule)i;
            return BZ_OK;
        }
    return fail(err, BZ_ERR_ARGUMENT, "no schedule \"%.*s\"; there are constant, linear and cosine",
                STR_ARG(name));
}

uint32_t train_steps(double epochs, size_t n, uint32_t n_batch)
{
    double steps = n_batch ? ceil(epochs * (double)n / n_batch) : 0;
    return steps >= 1 && steps < 1e9 ? (uint32_t)steps : 0;
}

/* Rows of a pass over n tokens. */
static uint32_t rows_of(const struct backend *be, uint32_t n)
{
    uint32_t step = be->bwd ? be->bwd->row_step : 1;
    if (step > 1 && n > 4 * step) step *= 4;
    return (n + step - 1) / step * step;
}

uint64_t trainer_bytes(struct model *m, const struct backend *be, uint32_t n_max,
                       const struct train_options *o)
{
    struct trainee shapes;
    if (!trainee_imagine(&shapes, m, &o->adapter)) return UINT64_MAX;
    uint64_t n = pass_bytes(m, be, rows_of(be, n_max), o->keep_all);
    trainee_close(&shapes);
    return n == UINT64_MAX ? n : n + trainee_bytes(m, &o->adapter) + N_CONTROL * sizeof(float);
}

static enum bz_status check_options(const struct train_options *o, const struct backend *be,
                                    struct bz_err *err)
{
    if (!be->bwd) return fail(err, BZ_ERR_UNSUPPORTED, "the backend %s cannot train", be->name);
    if (!(o->dropout >= 0 && o->dropout < 1))
        return fail(err, BZ_ERR_ARGUMENT, "dropout is a share from 0 to below 1");
    if (!(o->lr > 0) || !isfinite(o->lr))
        return fail(err, BZ_ERR_ARGUMENT, "the learning rate must be more than 0");
    if (!o->n_steps || !o->n_batch)
        return fail(err, BZ_ERR_ARGUMENT, "training takes at least one step of one example");
    if (!(o->clip >= 0) || !(o->decay >= 0) || !isfinite(o->adapter.alpha))
        return fail(err, BZ_ERR_ARGUMENT, "clip, decay and alpha are numbers, not below 0");
    return BZ_OK;
}

enum bz_status trainer_check_model(const struct model *m, struct bz_err *err)
{
    if (!m->config.canvas.n_canvas) return BZ_OK;
    return fail(err, BZ_ERR_UNSUPPORTED,
                "this model denoises canvases; training is for models that write one token after "
                "the other");
}

enum bz_status trainer_open(struct trainer *out, struct model *m, const struct backend *be,
                            const struct dataset *data, const struct train_options *o,
                            struct bz_err *err)
{
    struct trainer t = { .options = *o, .m = m, .be = be, .data = data, .epoch = UINT64_MAX };
    enum bz_status st = check_options(o, be, err);
    if (st == BZ_OK) st = trainer_check_model(m, err);
    if (st) return st;
    st = trainee_open(&t.trainee, m, be, &o->adapter, err);
    for (size_t i = 0; st == BZ_OK && o->dropout > 0 && i < t.trainee.n_targets; i++)
        if (t.trainee.targets[i].where->n_mat > 1 && !be->bwd->drops_experts)
            st = fail(err, BZ_ERR_UNSUPPORTED, "the backend %s trains experts without dropout only",
                      be->name);
    uint32_t n_max = dataset_longest(data);
    if (o->n_max > n_max) n_max = o->n_max;
    n_max = rows_of(be, n_max);
    if (st == BZ_OK) st = pass_open(&t.pass, m, be, n_max, o->keep_all, err);
    if (st == BZ_OK && !tensor_alloc(be, &t.control, N_CONTROL, 1))
        st = fail_memory(err, N_CONTROL * sizeof(float));
    t.control.rows = N_CONTROL;
    t.order = st ? NULL : mem_alloc(data->n, sizeof *t.order);
    t.padded = st ? NULL : mem_alloc(n_max, 3 * sizeof *t.padded);
    if (st == BZ_OK && (!t.order || !t.padded))
        st = fail_memory(err, data->n * sizeof *t.order + n_max * 3 * sizeof *t.padded);
    if (st) trainer_close(&t);
    else *out = t;
    return st;
}

void trainer_close(struct trainer *t)
{
    pass_close(&t->pass);
    trainee_close(&t->trainee);
    if (t->be) tensor_free(t->be, &t->control);
    mem_free(t->order);
    mem_free(t->padded);
    mem_free(t->mirror);
    *t = (struct trainer) { 0 };
}

/* ---- a step ---- */

/* Example number i of the whole training: every epoch sees all examples in an order of its own. */
static const struct example *example_at(struct trainer *t, uint64_t i)
{
    uint64_t n = t->data->n, epoch = i / n;
    if (t->epoch != epoch) {
        shuffle(t->order, (uint32_t)n, rng_at(t->options.adapter.seed ^ 0x6f72646572, epoch));
        t->epoch = epoch;
    }
    return &t->data->examples[t->order[i % n]];
}

/* The rate of step number `step`, counted from 0. */
static double rate_at(const struct train_options *o, uint32_t step)
{
    if (step < o->n_warmup) return (double)o->lr * (step + 1) / o->n_warmup;
    uint32_t falling = o->n_steps > o->n_warmup ? o->n_steps - o->n_warmup : 1;
    double done = (double)(step - o->n_warmup) / falling;
    switch (o->schedule) {
    case SCHEDULE_CONSTANT: break;
    case SCHEDULE_LINEAR: return (double)o->lr * (1 - done);
    case SCHEDULE_COSINE: return (double)o->lr * 0.5 * (1 + cos(3.14159265358979323846 * done));
    }
    return (double)o->lr;
}

static enum bz_status status_of(const struct run *r, struct bz_err *err)
{
    return r->status ? fail(err, r->status, "%s", r->err.text) : BZ_OK;
}

/* What is not said is zero. */
static void write_control(struct run *r, struct trainer *t, const float values[N_CONTROL])
{
    op_write(r, &t->control, 0, values, N_CONTROL);
}

enum bz_status trainer_begin(struct trainer *t, struct bz_err *err)
{
    const struct train_options *o = &t->options;
    struct run r = { .be = t->be };
    uint64_t first = (uint64_t)t->step * o->n_batch;
    t->now = (struct train_report) { .step = t->step + 1, .lr = rate_at(o, t->step) };
    t->now.epoch = (double)(first + o->n_batch) / (double)t->data->n;
    t->n_learned = 0;
    for (uint32_t i = 0; i < o->n_batch; i++) {
        const struct example *e = example_at(t, first + i);
        t->n_learned += e->n_learned;
        t->now.n_tokens += e->n;
    }
    const float values[N_CONTROL] = {
        [CONTROL_LR] = (float)t->now.lr,
        [CONTROL_FIX1] = (float)(1.0 / (1.0 - pow((double)o->beta1, (double)t->now.step))),
        [CONTROL_FIX2] = (float)(1.0 / (1.0 - pow((double)o->beta2, (double)t->now.step))),
        [CONTROL_SHARE] = 1.0f / (float)t->n_learned,
    };
    write_control(&r, t, values);
    if (!t->be->bwd->records) trainee_zero_grads(&r, &t->trainee);
    return status_of(&r, err);
}

void trainer_clear(struct run *r, struct trainer *t)
{
    trainee_zero_grads(r, &t->trainee);
}

const struct example *trainer_example(struct trainer *t, uint32_t i)
{
    return example_at(t, (uint64_t)t->step * t->options.n_batch + i);
}

/* A backend that records has one kind of pass: always of packed sequences, even of one example. The
 * rows after the last example are one more example, from which nothing is learned. */
uint32_t trainer_put(struct run *r, struct trainer *t, const struct example *e)
{
    uint32_t rows = rows_of(t->be, e->n);
    int32_t *ids = t->padded, *targets = ids + rows, *starts = targets + rows;
    if (!t->be->bwd->records) {
        pass_pack(r, &t->pass, e->starts, rows);
        pass_put(r, &t->pass, e->ids, e->targets, rows);
        return rows;
    }
    for (uint32_t i = 0; i < rows; i++) {
        bool real = i < e->n;
        ids[i] = real ? e->ids[i] : 0;
        targets[i] = real ? e->targets[i] : -1;
        starts[i] = !real ? (int32_t)e->n : e->starts ? e->starts[i] : 0;
    }
    pass_pack(r, &t->pass, starts, rows);
    pass_put(r, &t->pass, ids, targets, rows);
    return rows;
}

void trainer_gradients(struct run *r, struct trainer *t, uint32_t rows)
{
    pass_gradients(r, &t->pass, rows, 1);
    op_sum(r, &t->control, CONTROL_LOSS, &t->pass.loss);
}

void trainer_only_losses(struct run *r, struct trainer *t, uint32_t rows)
{
    pass_losses(r, &t->pass, rows);
    op_sum(r, &t->control, CONTROL_LOSS, &t->pass.loss);
}

void trainer_update(struct run *r, struct trainer *t)
{
    const struct train_options *o = &t->options;
    const struct adamw update = { o->beta1, o->beta2, o->eps, o->decay };
    trainee_sum_squares(r, &t->trainee, &t->control);
    op_clip(r, &t->control, o->clip);
    trainee_update(r, &t->trainee, &t->control, &update);
}

enum bz_status trainer_end(struct trainer *t, const float control[N_CONTROL],
                           struct train_report *report, struct bz_err *err)
{
    t->now.loss = (double)control[CONTROL_LOSS] / (double)t->n_learned;
    t->now.grad_norm = (double)control[CONTROL_LENGTH];
    const char *what = isfinite(t->now.loss) ? "gradient" : "loss";
    if (control[CONTROL_SCALE] < 0 && !t->step)
        return fail(err, BZ_ERR_LIMIT,
                    "step 1: the %s is not a number before anything was learned; the model's "
                    "weights are damaged, or an adapter on it is",
                    what);
    if (control[CONTROL_SCALE] < 0)
        return fail(err, BZ_ERR_LIMIT,
                    "step %u: the %s is no longer a number; a lower learning rate may help",
                    t->now.step, what);
    t->step++;
    *report = t->now;
    return BZ_OK;
}

uint32_t trainer_dropout_key(const struct trainer *t, uint32_t i)
{
    uint64_t number = (uint64_t)t->step * t->options.n_batch + i;
    return (uint32_t)rng_at(t->options.adapter.seed ^ 0x64726f70, number);
}

enum bz_status trainer_pass(struct trainer *t, uint32_t i, struct bz_err *err)
{
    struct run r = { .be = t->be };
    struct dropout *drop = t->trainee.drop;
    drop->share = t->options.dropout;
    drop->key = trainer_dropout_key(t, i);
    trainer_gradients(&r, t, trainer_put(&r, t, trainer_example(t, i)));
    drop->share = 0; /* who measures or asks the model in between sees all of it */
    model_check(&r, t->m);
    return status_of(&r, err);
}

enum bz_status trainer_finish(struct trainer *t, struct train_report *report, struct bz_err *err)
{
    struct run r = { .be = t->be };
    float control[N_CONTROL] = { 0 };
    trainer_update(&r, t);
    op_read(&r, &t->control, 0, control, N_CONTROL);
    enum bz_status st = status_of(&r, err);
    return st ? st : trainer_end(t, control, report, err);
}

enum bz_status trainer_step(struct trainer *t, struct train_report *report, struct bz_err *err)
{
    enum bz_status st = trainer_begin(t, err);
    for (uint32_t i = 0; i < t->options.n_batch && st == BZ_OK; i++) st = trainer_pass(t, i, err);
    return st ? st : trainer_finish(t, report, err);
}

enum bz_status trainer_begin_losses(struct trainer *t, const struct example *e, struct bz_err *err)
{
    struct run r = { .be = t->be };
    const float none[N_CONTROL] = { 0 };
    if (e->n > t->pass.n_max)
        return fail(err, BZ_ERR_LIMIT, "an example to evaluate is longer than those to learn from");
    write_control(&r, t, none);
    return status_of(&r, err);
}

enum bz_status trainer_losses(struct trainer *t, const struct example *e, double *sum,
                              struct bz_err *err)
{
    struct run r = { .be = t->be };
    float control[N_CONTROL] = { 0 };
    enum bz_status st = trainer_begin_losses(t, e, err);
    if (st) return st;
    trainer_only_losses(&r, t, trainer_put(&r, t, e));
    op_read(&r, &t->control, 0, control, N_CONTROL);
    *sum = (double)control[CONTROL_LOSS];
    model_check(&r, t->m);
    return status_of(&r, err);
}

enum bz_status trainer_evaluate(struct trainer *t, const struct dataset *data, double *loss,
                                struct bz_err *err)
{
    enum bz_status st = BZ_OK;
    double sum = 0, one = 0;
    for (size_t i = 0; i < data->n && st == BZ_OK; i++) {
        st = trainer_losses(t, &data->examples[i], &one, err);
        sum += one;
    }
    if (st == BZ_OK) *loss = sum / (double)data->n_learned;
    return st;
}

/* ---- checkpoints ----
 *
 *     "BZTRAIN1"  u32 step  sha256 of what must be the same: model, targets, data, options
 *     of every target, as f32: A, its two moments, B, its two moments
 *     sha256 of everything before it
 */

static void digest_of(const void *p, size_t n, uint8_t out[32])
{
    struct sha256 h;
    sha256_init(&h);
    sha256_feed(&h, p, n);
    sha256_end(&h, out);
}

static const char magic[8] = "BZTRAIN1";
enum { CHECKPOINT_HEAD = sizeof magic + 4 + 32 };

/* Model, data and options that decide what comes next. */
static void hash_setting(const struct trainer *t, uint8_t out[32])
{
    struct sha256 h;
    const struct train_options *o = &t->options;
    sha256_init(&h);
    sha256_feed(&h, t->m->fingerprint, strlen(t->m->fingerprint));
    for (size_t i = 0; i < t->trainee.n_targets; i++)
        sha256_feed(&h, t->trainee.targets[i].name, strlen(t->trainee.targets[i].name) + 1);
    for (size_t i = 0; i < t->data->n; i++) {
        const struct example *e = &t->data->examples[i];
        sha256_feed(&h, e->ids, e->n * sizeof *e->ids);
        sha256_feed(&h, e->targets, e->n * sizeof *e->targets);
        if (e->starts) sha256_feed(&h, e->starts, e->n * sizeof *e->starts);
    }
    float numbers[] = { o->lr,    o->beta1, o->beta2,         o->eps,
                        o->decay, o->clip,  o->adapter.alpha, o->dropout };
    uint64_t counts[] = { o->adapter.rank, o->adapter.rslora, o->adapter.seed, o->schedule,
                          o->n_warmup,     o->n_steps,        o->n_batch };
    sha256_feed(&h, numbers, sizeof numbers);
    sha256_feed(&h, counts, sizeof counts);
    if (o->worn) sha256_feed(&h, &o->worn, sizeof o->worn);
    sha256_end(&h, out);
}

/* The six tensors of a target, in the order of the file. */
static void list_tensors(struct trainee_target *t, struct tensor *out[6])
{
    struct tensor *all[6] = { &t->a.value, &t->a.m, &t->a.v, &t->b.value, &t->b.m, &t->b.v };
    memcpy(out, all, sizeof all);
}

uint64_t trainer_each(struct trainer *t, void *ctx, void (*fn)(void *ctx, struct tensor *x))
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->trainee.n_targets; i++) {
        struct tensor *all[6];
        list_tensors(&t->trainee.targets[i], all);
        for (int k = 0; k < 6; k++) {
            n += (uint64_t)all[k]->rows * all[k]->cols;
            if (fn) fn(ctx, all[k]);
        }
    }
    return n;
}

/* Looking for a tensor among them. */
struct search {
    const struct tensor *wanted;
    uint64_t at, n; /* where it begins; numbers so far */
};

static void search_one(void *ctx, struct tensor *x)
{
    struct search *s = ctx;
    if (x == s->wanted) s->at = s->n;
    s->n += (uint64_t)x->rows * x->cols;
}

static void read_numbers(struct run *r, struct trainer *t, const struct tensor *x, void *dst)
{
    struct search s = { .wanted = x };
    if (!t->mirror) {
        op_read(r, x, 0, dst, x->rows);
        return;
    }
    trainer_each(t, &s, search_one);
    memcpy(dst, t->mirror + s.at, (size_t)x->rows * x->cols * sizeof(float));
}

static size_t tensor_bytes(const struct tensor *t)
{
    return (size_t)t->rows * t->cols * sizeof(float);
}

enum bz_status trainer_save(struct trainer *t, struct buf *out, struct bz_err *err)
{
    struct run r = { .be = t->be };
    uint8_t digest[32];
    size_t start = out->n;
    hash_setting(t, digest);
    buf_put(out, magic, sizeof magic);
    buf_put(out, &t->step, sizeof t->step);
    buf_put(out, digest, sizeof digest);
    for (size_t i = 0; i < t->trainee.n_targets; i++) {
        struct tensor *all[6];
        list_tensors(&t->trainee.targets[i], all);
        for (int k = 0; k < 6 && !out->failed; k++) {
            void *room = mem_alloc(tensor_bytes(all[k]), 1);
            if (!room) return fail_memory(err, tensor_bytes(all[k]));
            read_numbers(&r, t, all[k], room);
            buf_put(out, room, tensor_bytes(all[k]));
            mem_free(room);
        }
    }
    if (r.status) return status_of(&r, err);
    if (out->failed) return fail_memory(err, out->n);
    digest_of(out->data + start, out->n - start, digest);
    buf_put(out, digest, sizeof digest);
    return out->failed ? fail_memory(err, out->n) : BZ_OK;
}

static enum bz_status check_checkpoint(const struct trainer *t, struct str c, struct bz_err *err)
{
    uint8_t digest[32];
    uint32_t step;
    size_t n = CHECKPOINT_HEAD + 32;
    for (size_t i = 0; i < t->trainee.n_targets; i++) {
        struct tensor *all[6];
        list_tensors(&t->trainee.targets[i], all);
        for (int k = 0; k < 6; k++) n += tensor_bytes(all[k]);
    }
    if (c.n < CHECKPOINT_HEAD || memcmp(c.p, magic, sizeof magic) != 0)
        return fail(err, BZ_ERR_FORMAT, "that is no checkpoint of a training");
    hash_setting(t, digest);
    if (memcmp(c.p + sizeof magic + 4, digest, 32) != 0)
        return fail(err, BZ_ERR_FORMAT,
                    "the checkpoint belongs to another training: the model, the data and the "
                    "options must be the same");
    digest_of(c.p, c.n >= 32 ? c.n - 32 : 0, digest);
    memcpy(&step, c.p + sizeof magic, sizeof step);
    if (c.n != n || memcmp(c.p + n - 32, digest, 32) != 0 || step > t->options.n_steps)
        return fail(err, BZ_ERR_FORMAT, "the checkpoint is damaged");
    return BZ_OK;
}

enum bz_status trainer_load(struct trainer *t, struct str c, struct bz_err *err)
{
    enum bz_status st = check_checkpoint(t, c, err);
    if (st) return st;
    struct run r = { .be = t->be };
    const char *at = c.p + CHECKPOINT_HEAD;
    for (size_t i = 0; i < t->trainee.n_targets; i++) {
        struct tensor *all[6];
        list_tensors(&t->trainee.targets[i], all);
        for (int k = 0; k < 6; k++) {
            op_write(&r, all[k], 0, at, all[k]->rows);
            at += tensor_bytes(all[k]);
        }
    }
    memcpy(&t->step, c.p + sizeof magic, sizeof t->step);
    return status_of(&r, err);
}

/* ---- the result ---- */

static bool all_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static bool target_is_finite(const struct adapter_target *t)
{
    size_t n = (size_t)t->rank * t->n_expert;
    return all_finite(t->a, n * t->n_in) && all_finite(t->b, n * t->n_out);
}

static float *copy_numbers(struct run *r, struct trainer *t, const struct tensor *x)
{
    float *out = mem_alloc((size_t)x->rows * x->cols, sizeof *out);
    if (out) read_numbers(r, t, x, out);
    return out;
}

enum bz_status trainer_adapter(struct trainer *t, struct adapter *out, struct bz_err *err)
{
    struct run r = { .be = t->be };
    struct trainee *all = &t->trainee;
    struct adapter a = { .arch = "gemma4", .n_targets = all->n_targets };
    /* One alpha for the whole file, in which the scale is alpha / rank. */
    a.alpha = all->rslora ? all->alpha * sqrtf((float)all->rank) : all->alpha;
    a.targets = mem_alloc(all->n_targets, sizeof *a.targets);
    bool ok = a.targets != NULL;
    if (!ok) a.n_targets = 0;
    for (size_t i = 0; ok && i < all->n_targets; i++) {
        struct trainee_target *from = &all->targets[i];
        struct weight *w = from->where;
        a.targets[i] = (struct adapter_target) {
            .name = arena_copy_str(&a.arena, from->name, strlen(from->name)),
            .rank = all->rank,
            .n_in = w->cols,
            .n_out = w->rows,
            .n_expert = w->n_mat,
            .scale = a.alpha / (float)all->rank,
            .a = copy_numbers(&r, t, &from->a.value),
            .b = copy_numbers(&r, t, &from->b.value),
        };
        ok = a.targets[i].name && a.targets[i].a && a.targets[i].b;
    }
    enum bz_status st =
        ok ? status_of(&r, err) : fail_memory(err, trainee_bytes(t->m, &t->options.adapter));
    for (size_t i = 0; st == BZ_OK && i < a.n_targets; i++)
        if (!target_is_finite(&a.targets[i]))
            st = fail(err, BZ_ERR_LIMIT,
                      "the adapter's numbers have overflowed; a lower learning rate may help");
    if (st) adapter_close(&a);
    else *out = a;
    return st;
}
