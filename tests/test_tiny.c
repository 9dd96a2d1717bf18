/* The trained models that ship with the repository: their numbers and transcripts are those of the
 * transformers reference, and their answers make sense. models/README.md says how the golden files
 * were made. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "check.h"
#include "engine.h"
#include "io/gguf.h"

#define LOGIT_TOLERANCE 2e-4

struct rows {
    const float *want; /* the last n positions' */
    uint32_t n, n_vocab, seen;
    double worst;
};

static bool compare_row(void *ctx, uint32_t position, const float *logits)
{
    struct rows *r = ctx;
    (void)position;
    for (uint32_t i = 0; i < r->n_vocab; i++) {
        double d = fabs((double)logits[i] - (double)r->want[(size_t)r->seen * r->n_vocab + i]);
        if (!(d <= r->worst)) r->worst = d;
    }
    r->seen++;
    return true;
}

/* Every "prompt.K.ids" with its "prompt.K.logits.q8_0". */
static void check_logits(bz_session *s, const char *path, uint32_t n_vocab, const char *what)
{
    struct gguf g;
    struct bz_err err;
    int n_prompts = 0;
    if (!check_that(gguf_open_file(&g, path, &err) == BZ_OK, path, 0, "opens")) return;
    for (uint64_t i = 0; i < g.n_tensors; i++) {
        const struct gguf_tensor *t = &g.tensors[i];
        if (!str_ends(t->name, ".ids")) continue;
        char name[64];
        snprintf(name, sizeof name, "%.*s.logits.q8_0", (int)t->name.n - 4, t->name.p);
        const struct gguf_tensor *l = gguf_tensor_find(&g, name);
        const int32_t *ids = source_map(&g.sources[0], t->offset, t->n_bytes);
        CHECK(ids && l && l->ne[0] == n_vocab);
        struct rows r = { source_map(&g.sources[0], l->offset, l->n_bytes), (uint32_t)l->ne[1],
                          n_vocab, 0, 0 };
        bz_session_truncate(s, 0, NULL, NULL);
        CHECK(bz_session_feed(s, ids, t->ne[0], r.n, compare_row, &r, &err) == BZ_OK);
        CHECK_MSG(r.seen == r.n && r.worst <= LOGIT_TOLERANCE, "%s, %s: off by %.2e", what, name,
                  r.worst);
        n_prompts++;
    }
    CHECK(n_prompts == 4);
    gguf_close(&g);
}

static size_t read_ids(const struct json *list, int32_t *out, size_t max)
{
    size_t n = 0;
    for (const struct json *j = list ? list->child : NULL; j && n < max; j = j->next)
        out[n++] = (int32_t)j->integer;
    return n;
}

/* The 20 greedy transcripts, token by token. */
static void check_transcripts(bz_session *s, const char *path, const char *what)
{
    struct source src;
    struct buf text = { 0 };
    struct arena arena = { 0 };
    struct json *root = NULL;
    struct bz_err err;
    int32_t prompt[2048], want[2048];
    int n_done = 0;
    if (!check_that(source_open_file(&src, path, &err) == BZ_OK, path, 0, "opens")) return;
    CHECK(source_read_all(&src, 1 << 20, &text, &err) == BZ_OK);
    CHECK(json_parse(&root, buf_str(&text), &arena, &err) == BZ_OK);
    const struct json *list = json_get(root, "q8_0");
    for (const struct json *j = list ? list->child : NULL; j; j = j->next, n_done++) {
        size_t n_prompt = read_ids(json_get(j, "prompt_ids"), prompt, 2048);
        size_t n_want = read_ids(json_get(j, "ids"), want, 2048);
        struct bz_generate_options o = { .n_max = (uint32_t)n_want };
        struct bz_generated g = { 0 };
        CHECK(bz_session_set(s, prompt, n_prompt, &err) == BZ_OK);
        CHECK(bz_generate(s, &o, &g, &err) == BZ_OK && g.n == n_want);
        const int32_t *got = bz_session_tokens(s, NULL) + g.first;
        CHECK_MSG(memcmp(got, want, g.n * sizeof *want) == 0, "%s: \"%.*s\" is answered otherwise",
                  what, STR_ARG(json_get_str(j, "prompt")));
    }
    CHECK_MSG(n_done == 20, "%d transcripts", n_done);
    buf_free(&text);
    arena_free(&arena);
    source_close(&src);
}

static bool keep_text(void *ctx, const char *text, size_t n)
{
    buf_put(ctx, text, n);
    return true;
}

/* Does the greedy answer to a question hold a word? */
static void check_answer(bz_engine *e, bz_session *s, const char *question, bool thinking,
                         const char *word)
{
    struct buf json = { 0 }, answer = { 0 };
    struct bz_chat_options co = { .thinking = thinking };
    struct bz_generate_options o = { .n_max = 200, .on_text = keep_text, .ctx = &answer };
    struct bz_err err = { "" };
    int32_t *ids = NULL;
    size_t n_ids = 0;
    buf_puts(&json, "{\"messages\":[{\"role\":\"user\",\"content\":");
    json_put_string(&json, str_of(question));
    buf_puts(&json, "}]}");
    CHECK(bz_chat_tokenize(e, json.data, json.n, &co, &ids, &n_ids, NULL, &err) == BZ_OK);
    CHECK(bz_session_set(s, ids, n_ids, &err) == BZ_OK);
    CHECK(bz_generate(s, &o, NULL, &err) == BZ_OK);
    CHECK_MSG(answer.data && strstr(answer.data, word), "\"%s\" is answered \"%s\"", question,
              answer.data ? answer.data : "");
    bz_free(ids);
    buf_free(&json);
    buf_free(&answer);
}

static void check_model(const char *name, enum bz_backend backend, const char *backend_name)
{
    char path[96], what[64];
    struct bz_engine_options o = { .backend = backend, .n_threads = 2 };
    struct bz_err err = { "" };
    bz_engine *e = NULL;
    bz_session *s = NULL;
    snprintf(path, sizeof path, "models/%s.q8_0.gguf", name);
    snprintf(what, sizeof what, "%s on %s", name, backend_name);
    bool ok =
        bz_engine_open(&e, path, &o, &err) == BZ_OK && bz_session_open(&s, e, NULL, &err) == BZ_OK;
    CHECK_MSG(ok, "%s: %s", what, err.text);
    if (!ok) return;
    snprintf(path, sizeof path, "models/%s.golden.gguf", name);
    check_logits(s, path, bz_engine_info(e).n_vocab, what);
    if (backend == BZ_BACKEND_CPU) { /* the reference loops take minutes for 20 transcripts */
        snprintf(path, sizeof path, "models/%s.golden.json", name);
        check_transcripts(s, path, what);
    }
    check_answer(e, s, "What is the capital of France?", false, "Paris");
    check_answer(e, s, "What is 47 + 38?", true, "85");
    bz_session_close(s);
    bz_engine_close(e);
}

/* ---- the one that denoises canvases ---- */

/* Worst difference of some rows' logits after the canvas `ids` from what the reference has. */
static double canvas_off(bz_session *s, const int32_t *ids, const struct gguf_kv *rows,
                         const float *want)
{
    const struct model *m = &s->engine->model;
    struct run r = { .be = &s->engine->backend };
    double worst = 0;
    int64_t row = 0;
    op_write(&r, &s->acts.canvas.ids, 0, ids, s->acts.canvas.n);
    model_canvas_rows(&r, m, &s->acts);
    for (uint32_t i = 0; i < rows->n && gguf_at_i64(rows, i, &row); i++) {
        model_logits(&r, m, &s->acts, (uint32_t)row, 1);
        for (uint32_t v = 0; v < m->config.n_vocab; v++) {
            const float *z = s->acts.logits.mem;
            double off = fabs((double)z[v] - (double)want[(size_t)i * m->config.n_vocab + v]);
            if (!(off <= worst)) worst = off;
        }
    }
    CHECK_MSG(r.status == BZ_OK, "%s", r.err.text);
    return worst;
}

/* Two steps of a canvas after the prompt in the session; the second is told what the first thought.
 * canvases: 2 x n ids. want: the logits of both. */
static double steps_off(bz_session *s, const int32_t *canvases, const struct gguf_kv *rows,
                        const float *want)
{
    struct bz_diffusion how = bz_diffusion_defaults(s->engine);
    struct bz_generate_options o = { .diffusion = &how };
    struct run r = { .be = &s->engine->backend };
    struct generation g;
    struct bz_err err;
    how.canvas = canvases;
    CHECK(generation_begin(&g, s, &o, &err) == BZ_OK);
    CHECK(diffusion_begin(&g, s, &r, &err) == BZ_OK);
    double first = canvas_off(s, canvases, rows, want);
    model_denoise(&r, &s->engine->model, &s->acts);
    want += rows->n * s->engine->model.config.n_vocab;
    double second = canvas_off(s, canvases + s->acts.canvas.n, rows, want);
    CHECK(r.status == BZ_OK);
    generation_close(&g);
    return first > second ? first : second;
}

/* Every "prompt.K.ids" with its ".canvas" and ".logits.q8_0". */
static void check_canvas_logits(bz_session *s, const char *path)
{
    struct gguf g;
    struct bz_err err;
    int n_prompts = 0;
    if (!check_that(gguf_open_file(&g, path, &err) == BZ_OK, path, 0, "opens")) return;
    const struct gguf_kv *rows = gguf_find(&g, "golden.rows");
    for (uint64_t i = 0; i < g.n_tensors; i++) {
        const struct gguf_tensor *t = &g.tensors[i];
        if (!str_ends(t->name, ".ids")) continue;
        char name[64];
        snprintf(name, sizeof name, "%.*s.canvas", (int)t->name.n - 4, t->name.p);
        const struct gguf_tensor *c = gguf_tensor_find(&g, name);
        snprintf(name, sizeof name, "%.*s.logits.q8_0", (int)t->name.n - 4, t->name.p);
        const struct gguf_tensor *l = gguf_tensor_find(&g, name);
        CHECK(c && l && c->ne[0] == s->acts.canvas.n && c->ne[1] == 2);
        CHECK(l->ne[1] == rows->n && l->ne[2] == 2);
        CHECK(bz_session_set(s, source_map(&g.sources[0], t->offset, t->n_bytes), t->ne[0], &err) ==
              BZ_OK);
        double off = steps_off(s, source_map(&g.sources[0], c->offset, c->n_bytes), rows,
                               source_map(&g.sources[0], l->offset, l->n_bytes));
        CHECK_MSG(off <= LOGIT_TOLERANCE, "%s: off by %.2e", name, off);
        n_prompts++;
    }
    CHECK(n_prompts == 4);
    gguf_close(&g);
}

/* All canvases of a script's list, one after the other; to be freed. */
static int32_t *read_canvases(const struct json *list, uint32_t n_canvas, size_t *n)
{
    int32_t *ids = malloc((list ? list->n : 1) * n_canvas * sizeof *ids), *to = ids;
    *n = list ? list->n : 0;
    for (const struct json *j = list ? list->child : NULL; j; j = j->next, to += n_canvas)
        CHECK(read_ids(j, to, n_canvas) == n_canvas);
    return ids;
}

struct ends {
    const struct json *next; /* {"steps", "stopped"} of the next canvas that ends */
    bool same;
};

static bool compare_end(void *ctx, const struct bz_canvas *c)
{
    struct ends *e = ctx;
    if (!c->stopped) return true;
    const struct json *steps = e->next ? json_get(e->next, "steps") : NULL;
    const char *why = c->stopped == BZ_CANVAS_STABLE ? "stable" : "steps";
    e->same = e->same && steps && steps->integer == c->step &&
              str_is(json_get_str(e->next, "stopped"), why);
    e->next = e->next ? e->next->next : NULL;
    return true;
}

/* One answer with the reference's random numbers: its tokens, and how its canvases end. */
static void check_scripted(bz_session *s, const struct json *j)
{
    struct bz_diffusion how = bz_diffusion_defaults(s->engine);
    struct bz_generate_options o = { .diffusion = &how };
    struct bz_generated g = { 0 };
    struct bz_err err = { "" };
    const struct json *script = json_get(j, "script"), *ends = json_get(j, "canvases");
    struct ends seen = { ends->child, true };
    int32_t prompt[2048], want[2048];
    size_t n_prompt = read_ids(json_get(j, "prompt_ids"), prompt, 2048);
    size_t n_want = read_ids(json_get(j, "ids"), want, 2048);
    int32_t *random = read_canvases(json_get(script, "random"), s->acts.canvas.n, &how.n_random);
    int32_t *sampled = read_canvases(json_get(script, "sampled"), s->acts.canvas.n, &how.n_sampled);
    how.random = random;
    how.sampled = sampled;
    how.n_canvases = (uint32_t)ends->n;
    how.on_step = compare_end;
    how.ctx = &seen;
    CHECK(bz_session_set(s, prompt, n_prompt, &err) == BZ_OK);
    CHECK_MSG(bz_generate(s, &o, &g, &err) == BZ_OK, "%s", err.text);
    const int32_t *got = bz_session_tokens(s, NULL) + g.first;
    CHECK_MSG(g.n == n_want && memcmp(got, want, g.n * sizeof *want) == 0,
              "\"%.*s\" is answered otherwise", STR_ARG(json_get_str(j, "prompt")));
    CHECK_MSG(seen.same && !seen.next && g.n_steps == how.n_sampled, "\"%.*s\" takes other steps",
              STR_ARG(json_get_str(j, "prompt")));
    free(random);
    free(sampled);
}

static void check_scripts(bz_session *s, const char *path)
{
    struct source src;
    struct buf text = { 0 };
    struct arena arena = { 0 };
    struct json *root = NULL;
    struct bz_err err;
    int n_done = 0;
    if (!check_that(source_open_file(&src, path, &err) == BZ_OK, path, 0, "opens")) return;
    CHECK(source_read_all(&src, 1 << 20, &text, &err) == BZ_OK);
    CHECK(json_parse(&root, buf_str(&text), &arena, &err) == BZ_OK);
    const struct json *list = json_get(root, "q8_0");
    for (const struct json *j = list ? list->child : NULL; j; j = j->next, n_done++)
        check_scripted(s, j);
    CHECK_MSG(n_done == 20, "%d transcripts", n_done);
    buf_free(&text);
    arena_free(&arena);
    source_close(&src);
}

/* What its draws are, its canvases settle on facts. */
static void check_diffusion(enum bz_backend backend)
{
    struct bz_engine_options o = { .backend = backend, .n_threads = 2 };
    struct bz_err err = { "" };
    bz_engine *e = NULL;
    bz_session *s = NULL;
    bool ok = bz_engine_open(&e, "models/tiny-diffusion.q8_0.gguf", &o, &err) == BZ_OK &&
              bz_session_open(&s, e, NULL, &err) == BZ_OK;
    CHECK_MSG(ok, "%s", err.text);
    if (!ok) return;
    CHECK(bz_engine_info(e).n_canvas == 32);
    check_canvas_logits(s, "models/tiny-diffusion.golden.gguf");
    if (backend == BZ_BACKEND_CPU) check_scripts(s, "models/tiny-diffusion.golden.json");
    check_answer(e, s, "What is the capital of France?", false, "Paris");
    check_answer(e, s, "What is the chemical symbol of gold?", true, "Au");
    check_answer(e, s, "Translate water into French.", false, "eau");
    bz_session_close(s);
    bz_engine_close(e);
}

int main(void)
{
    TEST("tiny: logits, transcripts and answers, threads and SIMD")
    check_model("tiny", BZ_BACKEND_CPU, "cpu");
    TEST("tiny-moe: logits, transcripts and answers, threads and SIMD")
    check_model("tiny-moe", BZ_BACKEND_CPU, "cpu");
    TEST("tiny-diffusion: logits, scripted transcripts and answers, threads and SIMD")
    check_diffusion(BZ_BACKEND_CPU);
    TEST("tiny-diffusion: logits and answers, reference loops")
    check_diffusion(BZ_BACKEND_REFERENCE);
    TEST("tiny: logits and answers, reference loops")
    check_model("tiny", BZ_BACKEND_REFERENCE, "reference");
    return check_done();
}
