/* The canvas against the transformers reference: two small random diffusion models, whose canvases
 * are denoised with scripted random numbers. Every step's decisions are compared, and every tap of
 * the encoder's pass and of some steps. tools/golden/README.md says how the files were made.
 */
#include "cli/cli.h"
#include "engine.h"
#include "model_fixture.h"
#include "taps_fixture.h"

enum { MOST = 512, TYPE_I32 = 26 /* of GGUF */ };

#define ENTROPY_TOLERANCE 1e-4 /* nats: four times what float32 and float64 differ by */

struct fixture {
    struct golden g;
    bz_engine *e;
    bz_session *s;
    uint32_t n; /* of the canvas */
    int32_t *random, *sampled;
    size_t n_random, n_sampled;
};

/* ---- what the reference says ---- */

static double number(const struct fixture *f, const char *key)
{
    double v = NAN;
    CHECK_MSG(gguf_get_f64(&f->g.taps, key, &v), "%s", key);
    return v;
}

/* The numbers of an array; returns how many. */
static uint32_t numbers(const struct fixture *f, const char *key, int32_t out[MOST])
{
    const struct gguf_kv *kv = gguf_find(&f->g.taps, key);
    int64_t v;
    uint32_t n = 0;
    while (kv && n < MOST && n < kv->n && gguf_at_i64(kv, n, &v)) out[n++] = (int32_t)v;
    CHECK_MSG(n > 0, "%s", key);
    return n;
}

/* Row `row` of a tensor of the run, whatever its type. */
static const void *run_row(const struct fixture *f, const char *name, uint64_t row)
{
    const struct gguf_tensor *t = gguf_tensor_find(&f->g.taps, name);
    CHECK_MSG(t && row < t->ne[1], "%s", name);
    return source_map(&f->g.taps.sources[t->shard], t->offset + row * t->ne[0] * 4, t->ne[0] * 4);
}

/* All rows of one as tokens, to be freed. */
static int32_t *run_tokens(const struct fixture *f, const char *name, size_t *n)
{
    const struct gguf_tensor *t = gguf_tensor_find(&f->g.taps, name);
    int32_t *ids = malloc(t->n_bytes);
    CHECK(t->ne[0] == f->n && t->type == TYPE_I32);
    memcpy(ids, run_row(f, name, 0), t->n_bytes);
    *n = t->ne[1];
    return ids;
}

/* ---- the run ---- */

static struct fixture open_fixture(const char *name, enum bz_backend backend)
{
    struct fixture f = { 0 };
    struct bz_err err = { "" };
    char path[96];
    snprintf(path, sizeof path, "tests/golden/model_%s.gguf", name);
    f.e = open_engine(path, backend);
    snprintf(path, sizeof path, "tests/golden/taps_%s.gguf", name);
    CHECK_MSG(gguf_open_file(&f.g.taps, path, &err) == BZ_OK, "%s", err.text);
    f.s = open_session(f.e, 256, 128);
    f.n = bz_engine_info(f.e).n_canvas;
    f.random = run_tokens(&f, "run.random", &f.n_random);
    f.sampled = run_tokens(&f, "run.sampled", &f.n_sampled);
    return f;
}

static void close_fixture(struct fixture *f)
{
    free(f->random);
    free(f->sampled);
    bz_session_close(f->s);
    bz_engine_close(f->e);
    gguf_close(&f->g.taps);
}

static struct bz_diffusion settings(const struct fixture *f)
{
    return (struct bz_diffusion) { .n_steps = (uint32_t)number(f, "golden.max_steps"),
                                   .n_stable = (uint32_t)number(f, "golden.stability"),
                                   .t_min = (float)number(f, "golden.t_min"),
                                   .t_max = (float)number(f, "golden.t_max"),
                                   .entropy_bound = (float)number(f, "golden.entropy_bound"),
                                   .confidence = (float)number(f, "golden.confidence"),
                                   .n_canvases = 3,
                                   .random = f->random,
                                   .n_random = f->n_random,
                                   .sampled = f->sampled,
                                   .n_sampled = f->n_sampled };
}

/* The prompt in one step, every tap of it that is computed: nobody needs the last layer's rows. */
static void encode_prompt(struct fixture *f)
{
    struct tap_ctx ctx = { .g = &f->g, .n_expert = f->e->model.config.n_expert };
    struct run r = { .be = &f->e->backend, .tap = on_tap, .tap_ctx = &ctx };
    int32_t ids[MOST];
    uint32_t n = numbers(f, "golden.ids", ids);
    snprintf(f->g.prefix, sizeof f->g.prefix, "prompt.");
    f->g.rows = gguf_find(&f->g.taps, "golden.prompt_rows");
    f->s->acts.ids.rows = n;
    op_write(&r, &f->s->acts.ids, 0, ids, n);
    kv_begin(&f->s->kv, n);
    model_forward(&r, &f->e->model, &f->s->acts, 0);
    session_advance(f->s, ids, n);
    CHECK_MSG(r.status == BZ_OK, "%s", r.err.text);
    CHECK(f->g.n_seen > 10);
}

static void compare_step(const struct fixture *f, uint32_t step)
{
    const struct canvas *c = &f->s->acts.canvas;
    const uint32_t *bits = session_canvas(f->s, &c->accepted);
    const float *h = session_canvas(f->s, &c->entropy), *want_h = run_row(f, "run.entropy", step);
    const int32_t *accepted = run_row(f, "run.accepted", step);
    size_t n_bytes = f->n * sizeof(int32_t);
    bool same_best =
        memcmp(session_canvas(f->s, &c->best), run_row(f, "run.best", step), n_bytes) == 0;
    bool same_ids =
        memcmp(session_canvas(f->s, &c->ids), run_row(f, "run.after", step), n_bytes) == 0;
    CHECK_MSG(same_best, "step %u", step);
    CHECK_MSG(same_ids, "step %u", step);
    CHECK_MSG(largest_difference(h, want_h, f->n) < ENTROPY_TOLERANCE, "step %u: off by %g", step,
              largest_difference(h, want_h, f->n));
    for (uint32_t i = 0; i < f->n; i++)
        CHECK_MSG((bits[i / 32] >> i % 32 & 1) == (accepted[i] != 0), "step %u", step);
}

/* Logits of all rows as they are before the temperature: the canvas before the step, once more. */
static void compare_logits(struct fixture *f, struct run *r)
{
    uint64_t cols = 0, rows = 0;
    const struct model *m = &f->e->model;
    const float *want = stored(&f->g, "logits", &cols, &rows);
    CHECK(want && rows == f->n && cols == m->config.n_vocab);
    model_canvas_rows(r, m, &f->s->acts);
    for (uint32_t t = 0; want && t < f->n; t++) {
        model_logits(r, m, &f->s->acts, t, 1);
        double off = largest_difference(f->s->acts.logits.mem, want + t * cols, cols);
        if (!(off <= f->g.worst_logit)) f->g.worst_logit = off;
    }
}

static bool is_tapped(const struct fixture *f, uint32_t step)
{
    int32_t list[MOST];
    uint32_t n = numbers(f, "golden.tap_steps", list);
    for (uint32_t i = 0; i < n; i++)
        if ((uint32_t)list[i] == step) return true;
    return false;
}

/* One step; returns how many tokens of a finished canvas are text. */
static uint32_t denoise(struct fixture *f, struct generation *g, uint32_t step)
{
    struct tap_ctx ctx = { .g = &f->g, .n_expert = f->e->model.config.n_expert };
    struct run r = { .be = &f->e->backend }, tapped = r;
    struct bz_err err = { "" };
    struct bz_session *s = f->s;
    uint32_t n = 0;
    if (!g->diffusion.begun) CHECK(diffusion_begin(g, s, &r, &err) == BZ_OK);
    CHECK_MSG(diffusion_noise(g, s, &r, &err) == BZ_OK, "%s", err.text);
    if (is_tapped(f, step)) {
        snprintf(f->g.prefix, sizeof f->g.prefix, "step.%u.", step);
        f->g.rows = gguf_find(&f->g.taps, "golden.rows");
        compare_logits(f, &r);
        tapped.tap = on_tap;
        tapped.tap_ctx = &ctx;
    }
    model_denoise(&tapped, &f->e->model, &s->acts);
    op_read(&r, &s->acts.canvas.all, 0, s->canvas, s->acts.canvas.n_shown);
    CHECK_MSG(r.status == BZ_OK && tapped.status == BZ_OK, "%s%s", r.err.text, tapped.err.text);
    compare_step(f, step);
    CHECK(diffusion_advance(g, s, &n, &err) == BZ_OK);
    if (!n) return 0;
    CHECK(bz_session_feed(s, session_canvas(s, &s->acts.canvas.best), n, 0, NULL, NULL, &err) ==
          BZ_OK);
    CHECK(diffusion_taken(g, s, &err) == BZ_OK);
    return n;
}

/* The whole run: every step's canvas, the steps of each canvas, the text. */
static void check_run(const char *name, enum bz_backend backend)
{
    struct fixture f = open_fixture(name, backend);
    struct bz_diffusion how = settings(&f);
    struct bz_generate_options o = { .diffusion = &how };
    struct generation g;
    int32_t canvas_steps[MOST], made[MOST];
    uint32_t n_canvases = numbers(&f, "golden.canvas_steps", canvas_steps), step = 0, in_canvas = 0;
    uint32_t n_made = numbers(&f, "golden.made", made);
    encode_prompt(&f);
    size_t n_prompt, n_all;
    bz_session_tokens(f.s, &n_prompt);
    CHECK(generation_begin(&g, f.s, &o, NULL) == BZ_OK);
    while (generation_has_room(&g, f.s) && step < f.n_sampled) {
        in_canvas++;
        if (!denoise(&f, &g, step++)) continue;
        CHECK(in_canvas == (uint32_t)canvas_steps[g.result.n_canvases - 1]);
        in_canvas = 0;
    }
    const int32_t *tokens = bz_session_tokens(f.s, &n_all);
    CHECK(step == f.n_sampled && g.result.n_canvases == n_canvases);
    CHECK(g.result.stop == BZ_STOP_END && n_all == n_prompt + n_made);
    CHECK(memcmp(tokens + n_prompt, made, n_made * sizeof *made) == 0);
    CHECK_MSG(f.g.n_bad == 0, "%s: first diverging tap %s (%d of %d are off)", name, f.g.first_bad,
              f.g.n_bad, f.g.n_seen);
    CHECK_MSG(f.g.worst_logit <= LOGIT_TOLERANCE, "worst logit off by %.3g", f.g.worst_logit);
    printf("  %-8s %-13s %u steps, %d taps, worst logit off by %.2g\n", name, f.e->backend.name,
           step, f.g.n_seen, f.g.worst_logit);
    generation_close(&g);
    close_fixture(&f);
}

/* ---- the command that other programs are checked with ---- */

/* n ids as a list for the command line, to be freed. */
static char *list_of(const int32_t *ids, size_t n)
{
    struct buf b = { 0 };
    for (size_t i = 0; i < n; i++) buf_printf(&b, "%s%d", i ? "," : "", ids[i]);
    return b.data;
}

/* `bezel canvas` gives the logits of the second step, told what the first one thought: its logits
 * divided by its temperature. */
static void check_command(const char *name)
{
    struct fixture f = open_fixture(name, BZ_BACKEND_CPU);
    struct tmp_path soft = tmp_path("soft.bin"), out = tmp_path("logits.bin");
    int32_t ids[MOST];
    char model[96], *prefix, *canvas;
    uint64_t cols = 0, rows = 0;
    snprintf(model, sizeof model, "tests/golden/model_%s.gguf", name);
    prefix = list_of(ids, numbers(&f, "golden.ids", ids));
    canvas = list_of(run_row(&f, "run.canvas", 1), f.n);
    snprintf(f.g.prefix, sizeof f.g.prefix, "step.0.");
    const float *z = stored(&f.g, "logits", &cols, &rows);
    float *processed = malloc(cols * rows * sizeof *processed);
    float temperature = settings(&f).t_max; /* of the first step */
    for (uint64_t i = 0; i < cols * rows; i++) processed[i] = z[i] / temperature;
    FILE *file = fopen(soft.z, "wb");
    CHECK(file && fwrite(processed, sizeof *processed, cols * rows, file) == cols * rows);
    CHECK(file && fclose(file) == 0);
    char *args[] = { "canvas", model,        "--prefix-ids", prefix,         "--canvas-ids",
                     canvas,   "--soft-bin", soft.z,         "--logits-bin", out.z,
                     NULL };
    CHECK(cmd_canvas(10, args) == CLI_OK);
    file = fopen(out.z, "rb");
    CHECK(file && fread(processed, sizeof *processed, cols * rows, file) == cols * rows);
    CHECK(file && fgetc(file) == EOF && fclose(file) == 0);
    snprintf(f.g.prefix, sizeof f.g.prefix, "step.1.");
    const float *want = stored(&f.g, "logits", &cols, &rows);
    CHECK(largest_difference(processed, want, cols * rows) <= LOGIT_TOLERANCE);
    CHECK(largest_difference(z, want, cols * rows) > 0.1);
    unlink(soft.z);
    unlink(out.z);
    free(processed);
    mem_free(prefix);
    mem_free(canvas);
    close_fixture(&f);
}

int main(void)
{
    static const char *const names[] = { "canvas16", "canvas12" };
    int64_t live = mem_live();
    for (int i = 0; i < 2; i++) {
        TEST("every step of a run agrees with transformers, reference loops")
        check_run(names[i], BZ_BACKEND_REFERENCE);
        TEST("every step of a run agrees with transformers, threads and SIMD")
        check_run(names[i], BZ_BACKEND_CPU);
        TEST("bezel canvas gives a step's logits") check_command(names[i]);
    }
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
