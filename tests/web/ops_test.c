/* ops_test.c - the op tables of tests/ops_cases.h and tests/ops_cases/backward.h on the GPU: part
 * of a wasm module that only tests load.
 *
 * The host (tests/web/test_ops.mjs) asks for one case after the other. The reference loops run a
 * case once. Each tier has a GPU backend of its own, which records the case with the same inputs.
 * The host then submits the program, reads the results into the places named here, and asks how far
 * they are off.
 */
#include "gpu/ops_gpu.h"
#include "ops_cases.h"
#include "ops_cases/backward.h"
#include "wasm/wasm.h"

/* A function of this module alone, which boundary.def does not have. */
#define TEST_EXPORT(type, name, ...)                                                               \
    type name(__VA_ARGS__);                                                                        \
    EXPORT(type, name, __VA_ARGS__)

/* f32 sums and the device's exp, tanh and sine here, double there. */
#define GPU_NMSE 1e-9
/* Halves as operands of matrix products: each is off by 2^-12 at most. */
#define MATRIX_NMSE 1e-6

enum { MAX_RESULTS = 8, MAX_BACKENDS = 8 };

struct deferred {
    gpu_buffer buffer;
    uint32_t first;
    size_t at, n;
    bool is_int;
};

static struct backend reference, gpus[MAX_BACKENDS];
static uint32_t n_gpus;
static struct bench want, got;
static struct nth_case now;
static struct deferred results[MAX_RESULTS];
static uint32_t n_results;
static struct recorded program;
static uint32_t n_dispatches;

TEST_EXPORT(int32_t, ops_test_open, void)
{
    if (wasm_failed(cpu_open(&reference, false, 1, &wasm_err))) return -1;
    reference.optional = &cpu_optional;
    return 0;
}

/* Open one more GPU backend: its number. */
TEST_EXPORT(int32_t, ops_test_add, uint32_t tier)
{
    CHECK(n_gpus < MAX_BACKENDS);
    struct backend *gpu = &gpus[n_gpus];
    if (wasm_failed(gpu_ops_open(gpu, (enum gpu_tier)tier, &wasm_err))) return -1;
    return (int32_t)n_gpus++;
}

TEST_EXPORT(void, ops_test_remove, uint32_t number)
{
    gpus[number].close(&gpus[number]);
}

TEST_EXPORT(void, ops_test_close, void)
{
    reference.close(&reference);
}

static void defer(struct bench *b, const struct tensor *t, size_t at, bool is_int)
{
    (void)b;
    CHECK(n_results < MAX_RESULTS);
    results[n_results++] =
        (struct deferred) { gpu_of(t), t->first, at, (size_t)t->rows * t->cols, is_int };
}

/* A window that the device repacks: the program, which the host runs before the case's own. */
struct placed {
    gpu_buffer staging, scratch;
    struct recorded program;
};

enum { MAX_PLACED = 64 };

static struct placed placed[MAX_PLACED];
static uint32_t n_placed;

static enum bz_status place(struct gpu_ops *g, const struct upload_window *win, const void *bytes)
{
    struct placed *p = &placed[n_placed++];
    uint32_t n = (win->n_bytes + 3) / 4 * 4;
    p->staging = gpu_buffer_new(n, GPU_STORAGE);
    p->scratch = gpu_buffer_new(n, GPU_STORAGE);
    gpu_buffer_write(p->staging, 0, bytes, n);
    return upload_place(&g->upload, &g->rec, win, p->staging, p->scratch, &p->program, &wasm_err);
}

static void free_placed(void)
{
    while (n_placed > 0) {
        struct placed *p = &placed[--n_placed];
        recorded_free(&p->program);
        gpu_buffer_free(p->staging);
        gpu_buffer_free(p->scratch);
    }
}

/* Upload the weights of the case to the GPU, in windows of odd size. By turns the core places a
 * window or the device does. */
static enum bz_status upload_all(struct gpu_ops *g, uint32_t turn)
{
    struct upload_window win;
    enum bz_status st = BZ_OK;
    while (st == BZ_OK) {
        uint32_t most = turn++ % 2 && n_placed < MAX_PLACED ? 54321 : 0;
        if (!upload_next(&g->upload, 12345, most, &win)) break;
        uint8_t *bytes = calloc(win.n_bytes + 3, 1);
        st = source_read(win.src, win.offset, bytes, win.n_bytes, &wasm_err);
        if (st == BZ_OK)
            st = win.placed ? place(g, &win, bytes)
                            : upload_give(&g->upload, &win, bytes, &wasm_err);
        free(bytes);
    }
    return st;
}

static void describe(const struct gpu_ops *g)
{
    struct buf b = { 0 };
    const struct op_case *c = &now.c;
    const char *op = now.op->name;
    bool product = strncmp(op, "linear", 6) == 0 || strcmp(op, "gate_up") == 0 ||
                   strcmp(op, "experts") == 0 || strcmp(op, "canvas_head") == 0;
    double usual = product && g->tier == TIER_MATRIX ? MATRIX_NMSE : GPU_NMSE;
    double limit = c->nmse > usual ? c->nmse : usual;
    buf_printf(&b, "{\"op\":\"%s\",\"rows\":%u,\"cols\":%u,\"format\":\"%s\",\"why\":\"%s\"", op,
               c->rows, c->cols, quant_find(c->format)->name, c->why);
    buf_printf(&b, ",\"limit\":%g,\"program\":%u,\"adapters\":%u,\"dispatches\":%u,\"results\":[",
               limit, program.program, c->n_lora, n_dispatches);
    for (uint32_t i = 0; i < n_results; i++)
        buf_printf(&b, "%s{\"buffer\":%u,\"offset\":%u,\"at\":%u,\"bytes\":%u}", i ? "," : "",
                   results[i].buffer, results[i].first * 4,
                   (uint32_t)(uintptr_t)(got.got + results[i].at), (uint32_t)results[i].n * 4);
    buf_puts(&b, "],\"placed\":[");
    for (uint32_t i = 0, n = 0; i < n_placed; i++)
        if (placed[i].program.program)
            buf_printf(&b, "%s%u", n++ ? "," : "", placed[i].program.program);
    buf_puts(&b, "]}");
    wasm_give_text(&b);
}

/* Case i of both tables, one after the other. */
static struct nth_case find_case(size_t i)
{
    static size_t n_forward;
    while (nth_case(ops, COUNT(ops), n_forward).op) n_forward++;
    if (i < n_forward) return nth_case(ops, COUNT(ops), i);
    return nth_case(bwd_ops, COUNT(bwd_ops), i - n_forward);
}

/* The name of case i's op is the result text; it is empty when the case is not for GPUs. Returns 0
 * past the last case, 2 when the case's row is for every format, else 1. */
TEST_EXPORT(int32_t, ops_test_op, uint32_t i)
{
    struct nth_case n = find_case(i);
    if (!n.op) return 0;
    wasm_show(n.op->name, n.c.cpu_only ? 0 : strlen(n.op->name));
    return n.every ? 2 : 1;
}

/* The reference's results of case i. ops_test_end must follow. */
TEST_EXPORT(void, ops_test_begin, uint32_t i)
{
    now = find_case(i);
    bench_open(&want, &reference, true, now.c.seed);
    now.op->run(&want, &now.c);
}

/* Record the case that has begun, i, on a GPU backend. The result text says what the case is and
 * where its results go. Returns -1 when it could not be recorded. ops_test_recorded must follow. */
TEST_EXPORT(int32_t, ops_test_record, uint32_t i, uint32_t number)
{
    const struct backend *gpu = &gpus[number];
    struct gpu_ops *g = gpu->ctx;
    const struct op_case *c = &now.c;
    bench_open(&got, gpu, true, c->seed);
    got.like = &want;
    got.defer = defer;
    n_results = 0;
    /* The step begins at the case's own position, so that kernels must add the two up. */
    gpu_ops_begin(gpu, c->pos, c->pos + c->rows);
    g->tiling = c->tiling;
    g->wide = c->wide;
    now.op->run(&got, c);
    program = gpu_ops_record(gpu);
    n_dispatches = g->rec.plan.n;
    gpu_write_step(gpu, c->pos, c->rows, 0);
    /* Also when recording failed: no window may outlive its weight. */
    enum bz_status st = upload_all(g, i);
    if (got.run.status || want.run.status) {
        st = got.run.status ? got.run.status : want.run.status;
        wasm_err = got.run.status ? got.run.err : want.run.err;
    }
    describe(g);
    return wasm_failed(st) ? -1 : 0;
}

/* How far the results that the host has brought are off. */
TEST_EXPORT(double, ops_test_nmse, void)
{
    for (uint32_t i = 0; i < n_results; i++)
        if (results[i].is_int) bench_ints(got.got + results[i].at, results[i].n);
    if (got.n_got != want.n_got) return INFINITY;
    double worst = 0; /* of the results, each against its own size */
    for (uint32_t i = 0; i < n_results; i++) {
        size_t at = results[i].at;
        double e = nmse(got.got + at, want.got + at, results[i].n);
        if (results[i].is_int && e > 0) return INFINITY;
        worst = fmax(worst, e);
    }
    return worst;
}

TEST_EXPORT(void, ops_test_recorded, void)
{
    recorded_free(&program);
    free_placed();
    bench_close(&got);
}

TEST_EXPORT(void, ops_test_end, void)
{
    bench_close(&want);
}

/* Checks inside the cases that failed. */
TEST_EXPORT(int32_t, ops_test_failed, void)
{
    return check_failed;
}
