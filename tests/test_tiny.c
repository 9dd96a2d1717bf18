/* The trained models that ship with the repository: their numbers and transcripts are those of the
 * transformers reference, and their answers make sense. models/README.md says how the golden files
 * were made. */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "bezel.h"
#include "check.h"
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

/* A diffusion model answers canvas by canvas; what its draws are, its canvases settle on facts. */
static void check_diffusion(void)
{
    struct bz_engine_options o = { .n_threads = 2 };
    struct bz_err err = { "" };
    bz_engine *e = NULL;
    bz_session *s = NULL;
    bool ok = bz_engine_open(&e, "models/tiny-diffusion.q8_0.gguf", &o, &err) == BZ_OK &&
              bz_session_open(&s, e, NULL, &err) == BZ_OK;
    CHECK_MSG(ok, "%s", err.text);
    if (!ok) return;
    CHECK(bz_engine_info(e).n_canvas == 32);
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
    TEST("tiny-diffusion: answers, threads and SIMD") check_diffusion();
    TEST("tiny: logits and answers, reference loops")
    check_model("tiny", BZ_BACKEND_REFERENCE, "reference");
    return check_done();
}
