/* selftest.c - picking cases, running them on both backends, comparing. The cases are in
 * selftest_cases.c. */
#include "gpu/selftest.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "gpu/ops_gpu_impl.h"
#include "gpu/selftest_impl.h"
#include "ops/ops_cpu.h"

/* A kernel that is right is off by less than 1e-9 (f32 sums in another order, and the device's exp
 * and tanh), one with a cache of halves by less than 1e-7; a wrong one by far more. */
#define MOST_NMSE 1e-6

enum { UPLOAD_WINDOW = 1 << 20 };

/* A case that was picked. */
struct test {
    struct test_case c;
    struct record_trace trace; /* the pipelines that it runs */
    struct stage stage;        /* on the GPU */
    double *want;              /* what the C loop says */
    uint32_t n_want;           /* numbers of it */
    uint32_t at;               /* of its results, in bytes */
    double nmse;
};

struct selftest {
    struct backend reference;
    const struct backend *gpu;
    const struct rope *rope;
    struct upload upload;
    struct stage_supply supply;
    struct tape tape; /* of one case after the other */
    struct test *tests;
    uint32_t n, cap;
    uint32_t n_expected; /* of which the C loop has said what they are to give */
    bool judged;
    enum { ASKED, QUEUED, ANY } round;         /* of picking: which pipelines a case may run */
    struct gpu_scratch scratch[N_GPU_SCRATCH]; /* that the model has no use for */
    struct recorded program;
    gpu_buffer results;
    uint32_t n_bytes;
};

static struct gpu_ops *ops(const struct selftest *t)
{
    return t->gpu->ctx;
}

/* ---- a case on one backend ---- */

static void stage_open(struct stage *s, struct selftest *t, const struct backend *be,
                       enum stage_place place)
{
    *s = (struct stage) { .run = { .be = be },
                          .place = place,
                          .rng = { 1 },
                          .tape = &t->tape,
                          .supply = &t->supply,
                          .upload = &t->upload,
                          .rope = t->rope };
}

static void stage_close(struct stage *s)
{
    for (uint32_t i = 0; i < s->n_tensors; i++)
        if (s->place != STAGE_PROBE) tensor_free(s->run.be, &s->tensors[i]);
    for (uint32_t i = 0; i < s->n_weights; i++) {
        struct stage_weight *w = &s->weights[i];
        if (s->place == STAGE_GPU) gpu_weight_free(w->w.mem);
        else if (s->place == STAGE_CPU && weight_exists(&w->w))
            s->run.be->unload(s->run.be->ctx, &w->w);
        source_close(&w->src);
        mem_free(w->bytes);
    }
    gpu_draw_close(&s->draw);
    s->n_tensors = s->n_weights = 0;
}

struct tensor *stage_tensor(struct stage *s, uint32_t rows, uint32_t cols, enum stage_kind kind,
                            uint32_t below)
{
    struct tensor *t = &s->tensors[s->n_tensors++];
    size_t n = (size_t)rows * cols;
    *t = (struct tensor) { .rows = rows, .cols = cols, .size = n, .half = kind == STAGE_F16 };
    if (s->place == STAGE_PROBE) return t;
    uint32_t *words = mem_alloc(n, sizeof *words);
    bool ok = words && (kind == STAGE_F16 ? tensor_alloc_half(s->run.be, t, rows, cols)
                                          : tensor_alloc(s->run.be, t, rows, cols));
    t->rows = rows;
    for (size_t i = 0; ok && kind == STAGE_I32 && i < n; i++) words[i] = rng_below(&s->rng, below);
    if (ok && kind != STAGE_I32)
        ok = stage_fill(s, quant_find(kind == STAGE_F16 ? QUANT_F16 : QUANT_F32), (uint8_t *)words,
                        n, 1);
    if (ok) op_write(&s->run, t, 0, words, rows);
    else run_fail(&s->run, BZ_ERR_MEMORY, "not enough memory to test the kernels");
    mem_free(words);
    return t;
}

/* On the GPU: made and filled, past the model's own list. */
static enum bz_status to_gpu(struct stage *s, struct stage_weight *w, struct bz_err *err)
{
    const struct gpu_ops *g = s->run.be->ctx;
    struct upload_window win;
    enum bz_status st = upload_add(s->upload, &w->w, &g->rec.limits, err);
    while (st == BZ_OK && upload_next(s->upload, UPLOAD_WINDOW, 0, &win))
        st = upload_give(s->upload, &win, source_map(win.src, win.offset, win.n_bytes), err);
    source_close(&w->src);
    mem_free(w->bytes);
    w->bytes = NULL;
    return st;
}

struct weight *stage_weight(struct stage *s, uint32_t id, uint32_t cols, uint32_t rows,
                            uint32_t n_mat, float size)
{
    struct stage_weight *w = &s->weights[s->n_weights++];
    struct bz_err err;
    size_t n = (size_t)cols * rows * n_mat;
    w->w = (struct weight) {
        .fmt = quant_find(id), .cols = cols, .rows = rows, .n_mat = n_mat, .src = &w->src
    };
    if (s->place == STAGE_PROBE) {
        w->part = (struct gpu_part) { .rows = rows * n_mat };
        gpu_layout_of(w->w.fmt, w->part.rows, cols, &w->part.layout);
        bool vector = rows == 1 && n_mat == 1;
        w->probe = (struct gpu_weight) { .shape = vector ? GPU_F32 : gpu_shape_of(w->w.fmt),
                                         .n_parts = 1,
                                         .parts = &w->part };
        w->w.mem = &w->probe;
        return &w->w;
    }
    w->bytes = mem_alloc(quant_row_bytes(w->w.fmt, n), 1);
    bool ok = w->bytes && stage_fill(s, w->w.fmt, w->bytes, n, size);
    enum bz_status st = ok ? BZ_OK : fail_memory(&err, n * sizeof(float));
    if (st == BZ_OK)
        st = source_open_memory(&w->src, "test", w->bytes, quant_row_bytes(w->w.fmt, n), &err);
    if (st == BZ_OK)
        st = s->place == STAGE_GPU ? to_gpu(s, w, &err)
                                   : s->run.be->load(s->run.be->ctx, &w->w, &err);
    if (st) {
        run_fail(&s->run, st, "%s", err.text);
        w->w.fmt = NULL;
    }
    return &w->w;
}

struct weight *stage_absent(struct stage *s)
{
    return &s->weights[s->n_weights++].w;
}

void stage_set_tiling(struct stage *s, uint32_t tiling)
{
    if (s->place != STAGE_CPU) ((struct gpu_ops *)s->run.be->ctx)->tiling = tiling;
}

void stage_result(struct stage *s, const struct tensor *t, enum stage_kind kind)
{
    s->results[s->n_results++] = (struct stage_output) { *t, kind };
}

void stage_repack(struct stage *s, struct tensor *y, const struct tensor *x,
                  const struct quant_format *f, uint32_t rows, uint32_t cols)
{
    struct repack_out out = { 0 };
    struct block_layout of;
    gpu_block_layout(f, cols, &of);
    gpu_repack_pieces(f, cols, 0, rows, rows, &out);
    if (s->place != STAGE_CPU) {
        struct gpu_ops *g = s->run.be->ctx;
        upload_repack(&g->rec, &of, rows * cols / f->block, &out, gpu_of(x), 0, gpu_of(y));
        return;
    }
    out.mem = mem_alloc(gpu_repack_scratch(f, cols, rows), 1);
    if (!out.mem) {
        run_fail(&s->run, BZ_ERR_MEMORY, "not enough memory to test the kernels");
        return;
    }
    gpu_repack(f, cols, x->mem, 0, rows, rows, &out);
    for (uint32_t k = 0; k < out.n; k++)
        memcpy((uint8_t *)y->mem + out.piece[k].offset, out.piece[k].data, out.piece[k].bytes);
    mem_free(out.mem);
}

static uint32_t output_bytes(const struct stage_output *o)
{
    return o->t.rows * o->t.cols * tensor_width(&o->t);
}

/* Number i of rows of int8 planes (kernels/lib/acts.wgsl): a byte of each for every digit, from the
 * highest on, then sixteen bytes for every sixteen, which begin with their scale. */
static double number_of_int8_planes(const uint8_t *bytes, uint32_t cols, uint32_t i)
{
    uint32_t col = i % cols;
    const uint8_t *row = bytes + (i - col) * sizeof(float), *digit = row + col;
    float scale;
    memcpy(&scale, row + 3 * cols + col / 16 * 16, sizeof scale);
    int32_t v =
        65536 * (int8_t)digit[0] + 256 * (int8_t)digit[cols] + (int8_t)digit[(size_t)2 * cols];
    return (double)v * (double)scale;
}

/* The same of f32 planes: four numbers of each sixteen in every plane. */
static double number_of_f32_planes(const uint8_t *bytes, uint32_t cols, uint32_t i)
{
    uint32_t col = i % cols, plane = col % 16 / 4, at = plane * cols / 4 + col / 16 * 4 + col % 4;
    return (double)f32_from_bits(load_u32(bytes + (i - col + at) * sizeof(float)));
}

static uint32_t output_numbers(const struct stage_output *o)
{
    return o->t.rows * o->t.cols;
}

static double number_at(const struct stage_output *o, const uint8_t *bytes, uint32_t i)
{
    if (o->kind == STAGE_INT8_PLANES) return number_of_int8_planes(bytes, o->t.cols, i);
    if (o->kind == STAGE_F32_PLANES) return number_of_f32_planes(bytes, o->t.cols, i);
    if (o->kind == STAGE_F16) return (double)f16_to_f32(load_u16(bytes + i * sizeof(uint16_t)));
    uint32_t word = load_u32(bytes + i * sizeof word);
    return o->kind == STAGE_I32 ? (int32_t)word : (double)f32_from_bits(word);
}

/* ---- picking ---- */

/* Run a case with the tiling that it names; afterwards the backend chooses by itself again. */
static void run_case(struct gpu_ops *g, struct stage *s, const struct test_case *c)
{
    uint32_t near = g->horizon;
    g->tiling = c->tiling;
    g->wide = c->wide;
    if (c->far) g->horizon = SELFTEST_FAR;
    c->run(s, c);
    g->tiling = 0;
    g->wide = false;
    g->horizon = near;
}

/* Plan a case that is not run. */
static enum bz_status plan_case(struct selftest *t, const struct test_case *c)
{
    struct stage s;
    stage_open(&s, t, t->gpu, STAGE_PROBE);
    gpu_ops_begin(t->gpu, SELFTEST_POS, SELFTEST_POS + c->rows);
    run_case(ops(t), &s, c);
    enum bz_status st = s.run.status;
    stage_close(&s);
    return st;
}

/* Take the case when it runs a pipeline that was asked for and that nothing has run yet. One that
 * also runs pipelines that were not, and have to be compiled for it, must wait: those that the
 * model needs later are for the second round, others for the last. */
bool selftest_pick(struct selftest *t, const struct test_case *c)
{
    struct recorder *rec = &ops(t)->rec;
    struct test test = { .c = *c };
    bool news = false;
    if (plan_case(t, c)) return true;
    test.trace = record_trace(rec);
    for (uint32_t i = 0; i < test.trace.n; i++) {
        const struct pipeline_slot *s = &rec->pipelines[test.trace.slot[i]];
        news = news || (s->pipeline && !s->tested);
    }
    bool more = test.trace.unknown || test.trace.queued;
    if (!news || t->round < (test.trace.unknown ? ANY : more ? QUEUED : ASKED)) return true;
    if (more) {
        record_compile(rec, 0, true);
        test.trace = record_trace(rec);
    }
    if (t->n == t->cap) {
        uint32_t cap = t->cap ? 2 * t->cap : 32;
        struct test *grown = mem_grow(t->tests, cap, sizeof *grown);
        if (!grown) return false;
        t->tests = grown;
        t->cap = cap;
    }
    t->tests[t->n++] = test;
    for (uint32_t i = 0; i < test.trace.n; i++) rec->pipelines[test.trace.slot[i]].tested = true;
    return true;
}

/* The test's program may have replaced scratch of the model by larger buffers: those become the
 * test's, and the model has its own again. */
static void take_scratch(struct selftest *t, const struct gpu_scratch *before)
{
    struct gpu_scratch *now = ops(t)->scratch;
    for (int k = 0; k < N_GPU_SCRATCH; k++) {
        struct gpu_scratch *own = &t->scratch[k];
        for (uint32_t i = before[k].n; i < now[k].n; i++)
            own->buffers[own->n++] = now[k].buffers[i];
        now[k] = before[k];
    }
}

static void drop_scratch(struct selftest *t)
{
    for (int k = 0; k < N_GPU_SCRATCH; k++)
        while (t->scratch[k].n > 0) gpu_buffer_free(t->scratch[k].buffers[--t->scratch[k].n]);
}

bool selftest_uses(const struct selftest *t, const char *part_of_name)
{
    const struct recorder *rec = &((const struct gpu_ops *)t->gpu->ctx)->rec;
    for (uint32_t i = 0; i < rec->n_pipelines; i++) {
        const struct pipeline_slot *s = &rec->pipelines[i];
        const char *path = kernel_family(rec->kernels[s->kernel].number)->path;
        if (s->pipeline && strstr(path, part_of_name)) return true;
    }
    return false;
}

bool selftest_uses_format(const struct selftest *t, uint32_t format)
{
    const struct recorder *rec = &((const struct gpu_ops *)t->gpu->ctx)->rec;
    for (uint32_t i = 0; i < rec->n_pipelines; i++) {
        const struct pipeline_slot *s = &rec->pipelines[i];
        uint32_t number = rec->kernels[s->kernel].number;
        struct kernel_axis axis = kernel_family(number)->format;
        if (s->pipeline && axis.mask && kernel_value(number, axis) == format) return true;
    }
    return false;
}

/* Is there a pipeline that no case has run yet? */
static bool lacks_case(const struct selftest *t)
{
    const struct recorder *rec = &((const struct gpu_ops *)t->gpu->ctx)->rec;
    for (uint32_t i = 0; i < rec->n_pipelines; i++)
        if (rec->pipelines[i].pipeline && !rec->pipelines[i].tested) return true;
    return false;
}

static bool pick_all(struct selftest *t)
{
    bool ok = true;
    for (uint32_t k = 0; ok && k < 6; k++) { /* three rounds each */
        t->round = k % 3;
        if (lacks_case(t)) ok = k < 3 ? selftest_pick_draws(t) : selftest_pick_all(t);
    }
    return ok;
}

/* ---- running ---- */

/* What the C loop says. */
static enum bz_status expect(struct selftest *t, struct test *test, struct bz_err *err)
{
    struct stage s;
    stage_open(&s, t, &t->reference, STAGE_CPU);
    test->c.run(&s, &test->c);
    test->at = t->n_bytes;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s.n_results; i++) n += output_numbers(&s.results[i]);
    test->want = mem_alloc(n, sizeof *test->want);
    if (!test->want) run_fail(&s.run, BZ_ERR_MEMORY, "not enough memory to test the kernels");
    for (uint32_t i = 0; i < s.n_results && s.run.status == BZ_OK; i++) {
        const struct stage_output *o = &s.results[i];
        for (uint32_t k = 0; k < output_numbers(o); k++)
            test->want[test->n_want++] = number_at(o, o->t.mem, k);
        t->n_bytes += (output_bytes(o) + 3) / 4 * 4;
    }
    stage_close(&s);
    return s.run.status ? fail(err, s.run.status, "%s", s.run.err.text) : BZ_OK;
}

/* All cases as one program, with their results side by side in one buffer. The last that was picked
 * comes first: those that draw, which were picked before all others, move the step on. */
enum bz_status selftest_record(struct selftest *t, struct bz_err *err)
{
    struct gpu_scratch before[N_GPU_SCRATCH];
    enum bz_status st = BZ_OK;
    if (!t->n) return BZ_OK;
    memcpy(before, ops(t)->scratch, sizeof before);
    t->results = gpu_buffer_new(t->n_bytes, GPU_STORAGE);
    gpu_ops_begin(t->gpu, SELFTEST_POS, SELFTEST_POS + SELFTEST_ROWS);
    gpu_write_step(t->gpu, SELFTEST_POS, 1, 0);
    for (uint32_t k = t->n; k-- > 0 && st == BZ_OK;) {
        struct stage *s = &t->tests[k].stage;
        uint32_t at = t->tests[k].at;
        /* A case was picked with its vectors in one buffer, as a model's lie; here they are placed
         * in the same way. */
        t->upload.vectors = NULL;
        stage_open(s, t, t->gpu, STAGE_GPU);
        run_case(ops(t), s, &t->tests[k].c);
        for (uint32_t i = 0; i < s->n_results; i++) {
            uint32_t n = (output_bytes(&s->results[i]) + 3) / 4 * 4;
            plan_copy(&ops(t)->rec.plan, gpu_of(&s->results[i].t), 0, t->results, at, n);
            at += n;
        }
        if (s->run.status) st = fail(err, s->run.status, "%s", s->run.err.text);
    }
    t->program = gpu_ops_record(t->gpu);
    take_scratch(t, before);
    if (st == BZ_OK && !t->program.program)
        st = fail(err, BZ_ERR_MEMORY, "not enough memory to test the kernels");
    return st;
}

struct selftest *selftest_open(const struct backend *gpu, const struct rope *rope,
                               struct bz_err *err)
{
    struct selftest *t = mem_alloc(1, sizeof *t);
    if (!t) {
        fail_memory(err, sizeof *t);
        return NULL;
    }
    t->gpu = gpu;
    t->rope = rope;
    enum bz_status st = cpu_open(&t->reference, false, 1, err);
    if (st == BZ_OK && !pick_all(t)) st = fail_memory(err, t->cap * sizeof *t->tests);
    if (st == BZ_OK) return t;
    selftest_close(t);
    return NULL;
}

enum bz_status selftest_prepare(struct selftest *t, bool *more, struct bz_err *err)
{
    *more = t->n_expected < t->n;
    return *more ? expect(t, &t->tests[t->n_expected++], err) : BZ_OK;
}

void selftest_close(struct selftest *t)
{
    if (!t) return;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct record_trace *trace = &t->tests[i].trace;
        for (uint32_t k = 0; !t->judged && k < trace->n; k++)
            ops(t)->rec.pipelines[trace->slot[k]].tested = false;
        stage_close(&t->tests[i].stage);
        mem_free(t->tests[i].want);
    }
    recorded_free(&t->program);
    drop_scratch(t);
    if (t->results) gpu_buffer_free(t->results);
    upload_free(&t->upload);
    stage_supply_free(&t->supply);
    tape_free(&t->tape);
    if (t->reference.close) t->reference.close(&t->reference);
    mem_free(t->tests);
    mem_free(t);
}

gpu_program selftest_program(const struct selftest *t)
{
    return t->program.program;
}

gpu_buffer selftest_results(const struct selftest *t, uint32_t *n_bytes)
{
    *n_bytes = t->n_bytes;
    return t->results;
}

/* ---- judging ---- */

/* The difference of a result from the C loop's (nmse); infinite where a number is missing or NaN,
 * so that it counts as wrong. */
static double compare(const struct test *test, const uint8_t *results)
{
    const uint8_t *bytes = results + test->at;
    const double *want = test->want, *end = want + test->n_want;
    double error = 0, size = 0;
    for (uint32_t i = 0; i < test->stage.n_results; i++) {
        const struct stage_output *o = &test->stage.results[i];
        if (output_numbers(o) > (size_t)(end - want)) return INFINITY;
        for (uint32_t k = 0; k < output_numbers(o); k++, want++) {
            double off = number_at(o, bytes, k) - *want;
            error += off * off;
            size += *want * *want;
        }
        bytes += (output_bytes(o) + 3) / 4 * 4;
    }
    double nmse = size > 0 ? error / size : error;
    return want == end && !isnan(nmse) ? nmse : INFINITY;
}

static struct record_kernel *kernel_of(const struct selftest *t, const struct test *test,
                                       uint32_t i)
{
    struct recorder *rec = &ops(t)->rec;
    return &rec->kernels[rec->pipelines[test->trace.slot[i]].kernel];
}

static bool is_plain(const struct record_kernel *k)
{
    return kernel_plain(k->number) == k->number;
}

/* How far pipeline i of a test is trusted: 3 a right result of it alone, 2 one that it shares with
 * other pipelines, 1 one of another pipeline of its kernel, 0 none. */
static int trust(const struct selftest *t, const struct test *test, uint32_t i)
{
    const struct pipeline_slot *s = &ops(t)->rec.pipelines[test->trace.slot[i]];
    return s->validated_alone ? 3 : s->validated ? 2 : kernel_of(t, test, i)->trusted ? 1 : 0;
}

/* Demote after a wrong result: of the pipelines that are trusted least, the kernels of faster
 * tiers, else all of them. */
static void blame(struct selftest *t, const struct test *test)
{
    int least = 3;
    bool faster = false;
    for (uint32_t i = 0; i < test->trace.n; i++)
        if (trust(t, test, i) < least) least = trust(t, test, i);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < test->trace.n; i++) {
            struct record_kernel *k = kernel_of(t, test, i);
            if (trust(t, test, i) > least) continue;
            if (pass == 0) faster = faster || !is_plain(k);
            else if (!faster || !is_plain(k)) k->verdict = KERNEL_WRONG;
        }
}

uint32_t selftest_judge(struct selftest *t, const uint8_t *results)
{
    struct recorder *rec = &ops(t)->rec;
    uint32_t demoted = 0;
    t->judged = true;
    for (uint32_t i = 0; i < rec->n_kernels; i++) {
        rec->kernels[i].verdict = KERNEL_UNUSED;
        rec->kernels[i].nmse = 0;
    }
    for (uint32_t i = 0; i < rec->n_pipelines; i++) {
        const struct pipeline_slot *s = &rec->pipelines[i];
        struct record_kernel *k = &rec->kernels[s->kernel];
        if (s->pipeline && !s->tested && !k->barred) k->verdict = KERNEL_UNTESTED;
    }
    for (uint32_t k = 0; k < t->n; k++) {
        struct test *test = &t->tests[k];
        test->nmse = compare(test, results);
        for (uint32_t i = 0; i < test->trace.n; i++) {
            struct record_kernel *kernel = kernel_of(t, test, i);
            if (!(kernel->nmse >= test->nmse)) kernel->nmse = test->nmse;
            if (!(test->nmse <= MOST_NMSE)) continue;
            struct pipeline_slot *slot = &rec->pipelines[test->trace.slot[i]];
            kernel->trusted = slot->validated = true;
            if (test->trace.n == 1) slot->validated_alone = true;
            if (kernel->verdict == KERNEL_UNUSED) kernel->verdict = KERNEL_GOOD;
        }
    }
    for (uint32_t k = 0; k < t->n; k++)
        if (!(t->tests[k].nmse <= MOST_NMSE)) blame(t, &t->tests[k]);
    for (uint32_t k = 0; k < rec->n_kernels; k++)
        if (rec->kernels[k].verdict == KERNEL_WRONG)
            demoted += recorder_demote(rec, rec->kernels[k].number);
    return demoted;
}

const struct record_kernel *selftest_kernels(const struct selftest *t, uint32_t *n)
{
    *n = ops(t)->rec.n_kernels;
    return ops(t)->rec.kernels;
}
