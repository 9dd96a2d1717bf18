/* wasm_train.c - exports: data to learn from, and adapters in training.
 *
 * A step is begun, made of one pass a sequence, and finished, so that the host can hear others in
 * between.
 */
#include <math.h>

#include "base/mem.h"
#include "wasm/wasm_train.h"

/* ---- data ---- */

EXPORT(struct dataset *, bz_wasm_data_open, const bz_engine *e, const char *text, uint32_t n,
       uint32_t n_max, uint32_t held)
{
    struct dataset_options o = {
        .tokenizer = e->tokenizer,
        .variant = e->variant == BZ_CHAT_LARGE ? CHAT_LARGE : CHAT_SMALL,
        .n_max = n_max,
    };
    struct dataset *d = mem_alloc(1, sizeof *d);
    enum bz_status st = d ? dataset_read(d, (struct str) { text, n },
                                         held ? "the data to evaluate" : "the data", &o, &wasm_err)
                          : fail_memory(&wasm_err, sizeof *d);
    if (!wasm_failed(st)) return d;
    mem_free(d);
    return NULL;
}

EXPORT(void, bz_wasm_data_close, struct dataset *d)
{
    if (d) dataset_free(d);
    mem_free(d);
}

EXPORT(int32_t, bz_wasm_data_about, const struct dataset *d)
{
    struct buf b = { 0 };
    buf_printf(&b, "{\"examples\":%zu,\"tokens\":%llu,\"learned\":%llu,\"longest\":%u}", d->n,
               (unsigned long long)d->n_tokens, (unsigned long long)d->n_learned,
               dataset_longest(d));
    return wasm_give_text(&b);
}

EXPORT(int32_t, bz_wasm_data_example, const struct dataset *d, uint32_t i)
{
    if (i >= d->n)
        return wasm_failed(fail(&wasm_err, BZ_ERR_ARGUMENT, "there is no example %u", i)) ? -1 : 0;
    const struct example *e = &d->examples[i];
    struct buf b = { 0 };
    int32_t line = (int32_t)e->line;
    buf_put(&b, &line, sizeof line);
    for (uint32_t t = 0; t < e->n; t++) {
        int32_t pair[2] = { e->ids[t], t > 0 && e->targets[t - 1] >= 0 };
        buf_put(&b, pair, sizeof pair);
    }
    return wasm_give_text(&b);
}

/* ---- options ---- */

struct wishes {
    struct train_options options;
    const char **targets;
    double epochs, eval_share;
    uint32_t accumulate, n_sequence;
    bool no_packing;
};

static double number_or(const struct json *j, const char *key, double otherwise)
{
    const struct json *m = json_get(j, key);
    return m && (m->type == JSON_INT || m->type == JSON_FLOAT) ? m->number : otherwise;
}

/* Texts live in the arena. */
static enum bz_status read_targets(struct wishes *w, const struct json *list, struct arena *arena)
{
    if (!list || list->type != JSON_ARRAY) return BZ_OK;
    w->targets = arena_alloc(arena, list->n + 1, sizeof *w->targets);
    size_t n = 0;
    for (const struct json *one = list->child; w->targets && one; one = one->next) {
        if (one->type != JSON_STRING)
            return fail(&wasm_err, BZ_ERR_ARGUMENT, "targets are parts of tensors' names");
        w->targets[n++] = arena_copy_str(arena, one->text.p, one->text.n);
    }
    w->options.adapter.targets = w->targets;
    w->options.adapter.n_targets = n;
    return w->targets ? BZ_OK : fail_memory(&wasm_err, list->n * sizeof *w->targets);
}

/* Read {"rank", "alpha", "rslora", "dropout", "targets", "seed", "lr", "schedule", "warmup",
 * "steps" | "epochs", "batch", "accumulate", "sequence", "no_packing", "decay", "clip", "keep_all",
 * "eval_share"}. All may be absent. */
static enum bz_status read_wishes(struct wishes *w, const struct json *j, struct arena *arena)
{
    struct train_options *o = &w->options;
    *w = (struct wishes) { .options = train_defaults(),
                           .accumulate = 1,
                           .n_sequence = TRAIN_SEQUENCE };
    struct str schedule = json_get_str(j, "schedule");
    o->n_warmup = UINT32_MAX;
    json_u32(j, "rank", &o->adapter.rank);
    json_f32(j, "alpha", &o->adapter.alpha);
    o->adapter.rslora = json_flag(j, "rslora");
    o->adapter.seed = (uint64_t)(int64_t)number_or(j, "seed", 0);
    json_f32(j, "lr", &o->lr);
    json_f32(j, "decay", &o->decay);
    json_f32(j, "dropout", &o->dropout);
    json_f32(j, "clip", &o->clip);
    json_u32(j, "warmup", &o->n_warmup);
    json_u32(j, "steps", &o->n_steps);
    json_u32(j, "batch", &o->n_batch);
    json_u32(j, "accumulate", &w->accumulate);
    json_u32(j, "sequence", &w->n_sequence);
    o->keep_all = json_flag(j, "keep_all");
    w->no_packing = json_flag(j, "no_packing");
    w->epochs = number_or(j, "epochs", 3);
    w->eval_share = number_or(j, "eval_share", 0);
    if (o->n_batch > 4096 || w->accumulate > 4096 || !w->accumulate)
        return fail(&wasm_err, BZ_ERR_ARGUMENT, "batch and accumulate are 1 to 4096");
    o->n_batch *= w->accumulate;
    enum bz_status st = schedule.p ? schedule_find(&o->schedule, schedule, &wasm_err) : BZ_OK;
    return st ? st : read_targets(w, json_get(j, "targets"), arena);
}

/* Bytes beyond the model; UINT64_MAX: memory is too short to find out. */
static uint64_t count_bytes(bz_engine *e, uint32_t n_max, const struct train_options *o)
{
    const struct backward_ops *bwd = e->backend.bwd;
    uint64_t n = e->has_model ? trainer_bytes(&e->model, &e->backend, n_max, o) : 0;
    if (n == UINT64_MAX || !bwd || !bwd->records) return n;
    return n + gpu_train_bytes(&e->backend, &e->model, n_max, o);
}

EXPORT(double, bz_wasm_train_bytes, bz_engine *e, const char *text, uint32_t n, uint32_t n_max)
{
    struct arena arena = { 0 };
    struct json *j;
    struct wishes w;
    enum bz_status st = json_parse(&j, (struct str) { text, n }, &arena, &wasm_err);
    if (st == BZ_OK) st = read_wishes(&w, j, &arena);
    if (st == BZ_OK && e->has_model) st = trainer_check_model(&e->model, &wasm_err);
    uint64_t bytes = st ? 0 : count_bytes(e, n_max, &w.options);
    if (bytes == UINT64_MAX)
        st = fail(&wasm_err, BZ_ERR_MEMORY, "not enough memory to plan %u tokens", n_max);
    arena_free(&arena);
    return wasm_failed(st) ? -1 : (double)bytes;
}

/* ---- training ---- */

static enum bz_status begin_training(struct training *t, bz_engine *e, struct wishes *w)
{
    struct train_options *o = &w->options;
    enum bz_status st = BZ_OK;
    if (!e->has_model) st = fail(&wasm_err, BZ_ERR_ARGUMENT, "a vocabulary alone cannot learn");
    if (st == BZ_OK && w->eval_share > 0 && !t->held.n)
        st = dataset_hold_back(&t->held, &t->data, w->eval_share, &wasm_err);
    t->n_examples = t->data.n;
    if (st == BZ_OK && !w->no_packing)
        st = dataset_pack(&t->data, w->n_sequence, o->adapter.seed, &wasm_err);
    if (!o->n_steps) o->n_steps = train_steps(w->epochs, t->data.n, o->n_batch);
    if (o->n_warmup == UINT32_MAX) o->n_warmup = o->n_steps / 20;
    o->n_max = dataset_longest(&t->held);
    if (st == BZ_OK) st = trainer_open(&t->trainer, &e->model, &e->backend, &t->data, o, &wasm_err);
    if (st) return st;
    t->n_bytes = count_bytes(e, t->trainer.pass.n_max, o);
    t->engine = e;
    e->n_trainings++;
    t->trainer.options.adapter.targets =
        NULL; /* found; their names live no longer than this call */
    t->trainer.options.adapter.n_targets = 0;
    return BZ_OK;
}

EXPORT(void, bz_wasm_train_close, struct training *t)
{
    if (!t) return;
    gpu_train_programs_free(&t->programs);
    trainer_close(&t->trainer);
    if (t->engine) t->engine->n_trainings++;
    dataset_free(&t->data);
    dataset_free(&t->held);
    mem_free(t);
}

EXPORT(struct training *, bz_wasm_train_open, bz_engine *e, struct dataset *data,
       struct dataset *held, const char *text, uint32_t n)
{
    struct arena arena = { 0 };
    struct json *j;
    struct wishes w;
    struct training *t = mem_alloc(1, sizeof *t);
    enum bz_status st = t ? json_parse(&j, (struct str) { text, n }, &arena, &wasm_err)
                          : fail_memory(&wasm_err, sizeof *t);
    if (t) {
        t->data = *data;
        *data = (struct dataset) { 0 };
        if (held) t->held = *held;
        if (held) *held = (struct dataset) { 0 };
    }
    if (st == BZ_OK) st = read_wishes(&w, j, &arena);
    if (st == BZ_OK) st = begin_training(t, e, &w);
    arena_free(&arena);
    bz_wasm_data_close(data);
    bz_wasm_data_close(held);
    if (!wasm_failed(st)) return t;
    bz_wasm_train_close(t);
    return NULL;
}

EXPORT(int32_t, bz_wasm_train_about, struct training *t)
{
    struct trainer *r = &t->trainer;
    struct buf b = { 0 };
    buf_printf(&b, "{\"step\":%u,\"steps\":%u,\"passes\":%u", r->step, r->options.n_steps,
               r->options.n_batch);
    buf_printf(&b, ",\"examples\":%zu,\"sequences\":%zu,\"tokens\":%llu,\"learned\":%llu",
               t->n_examples, t->data.n, (unsigned long long)t->data.n_tokens,
               (unsigned long long)t->data.n_learned);
    buf_printf(&b, ",\"held\":%zu,\"held_learned\":%llu,\"bytes\":%llu}", t->held.n,
               (unsigned long long)t->held.n_learned, (unsigned long long)t->n_bytes);
    return wasm_give_text(&b);
}

EXPORT(int32_t, bz_wasm_train_begin, struct training *t)
{
    return wasm_failed(trainer_begin(&t->trainer, &wasm_err)) ? -1 : 0;
}

EXPORT(int32_t, bz_wasm_train_pass, struct training *t, uint32_t i)
{
    return wasm_failed(trainer_pass(&t->trainer, i, &wasm_err)) ? -1 : 0;
}

int32_t wasm_give_report(const struct train_report *r)
{
    struct buf b = { 0 };
    buf_printf(&b,
               "{\"step\":%u,\"epoch\":%.9g,\"loss\":%.9g,\"lr\":%.9g,\"grad_norm\":%.9g"
               ",\"tokens\":%llu}",
               r->step, r->epoch, r->loss, r->lr, r->grad_norm, (unsigned long long)r->n_tokens);
    return wasm_give_text(&b);
}

EXPORT(int32_t, bz_wasm_train_finish, struct training *t)
{
    struct train_report r;
    return wasm_failed(trainer_finish(&t->trainer, &r, &wasm_err)) ? -1 : wasm_give_report(&r);
}

EXPORT(double, bz_wasm_train_held, struct training *t, uint32_t i)
{
    double sum = 0;
    enum bz_status st = i < t->held.n
                            ? trainer_losses(&t->trainer, &t->held.examples[i], &sum, &wasm_err)
                            : fail(&wasm_err, BZ_ERR_ARGUMENT, "there is no example %u", i);
    return wasm_failed(st) ? -1 : sum;
}

EXPORT(void, bz_wasm_train_scale, struct training *t, float scale)
{
    trainee_set_scale(&t->trainer.trainee, scale);
}

EXPORT(int32_t, bz_wasm_train_save, struct training *t)
{
    struct buf b = { 0 };
    if (!wasm_failed(trainer_save(&t->trainer, &b, &wasm_err))) return wasm_give_text(&b);
    buf_free(&b);
    return -1;
}

EXPORT(int32_t, bz_wasm_train_load, struct training *t, const char *checkpoint, uint32_t n)
{
    return wasm_failed(trainer_load(&t->trainer, (struct str) { checkpoint, n }, &wasm_err)) ? -1
                                                                                             : 0;
}

EXPORT(int32_t, bz_wasm_train_file, struct training *t, enum adapter_file which, const char *base,
       uint32_t n)
{
    struct adapter a = { 0 };
    char *name = mem_copy_str(base, n);
    enum bz_status st =
        name ? trainer_adapter(&t->trainer, &a, &wasm_err) : fail_memory(&wasm_err, n);
    int32_t done = wasm_failed(st) ? -1 : wasm_give_adapter(&a, which, name);
    adapter_close(&a);
    mem_free(name);
    return done;
}
