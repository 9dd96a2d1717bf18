/* test_diffusion.c - a diffusion model: its file, its passes, its sampler, its sessions.
 *
 * The model is random, so its entropies are near log(vocabulary) and it never settles by itself.
 * Low temperatures make it certain; fixed positions and scripts make it do what a test wants.
 */
#include "diffusion_fixture.h"
#include "step.h"
#include "train/trainer.h"

enum { N_CANVAS = 24, N_PREFIX = 30 }; /* the prefix is longer than the window of 16 */

#define CLOSE 2e-4 /* of logits, as in test_session.c */

static struct tmp_path path; /* of the model that most tests use */

static bz_engine *open_diffusion(const struct diffusion_edit *edit, enum bz_backend backend)
{
    struct diffusion_edit e = *edit;
    if (!e.n_canvas) e.n_canvas = N_CANVAS;
    write_diffusion(path.z, MOE, &e);
    bz_engine *engine = open_engine(path.z, backend);
    unlink(path.z);
    return engine;
}

/* With the first n random tokens in it. */
static bz_session *open_text(bz_engine *e, uint32_t n_context, size_t n)
{
    bz_session *s = open_session(e, n_context, 16);
    int32_t *ids = random_ids(e, n, 5);
    feed_pieces(s, ids, n, n);
    free(ids);
    return s;
}

/* ---- one pass ---- */

/* Logits of a canvas after the session's text, n x n_vocab, to be freed. */
static float *canvas_logits(bz_session *s, const int32_t *canvas)
{
    const struct model *m = &s->engine->model;
    struct run r = { .be = &s->engine->backend };
    uint32_t n = s->acts.canvas.n, n_vocab = m->config.n_vocab;
    float *z = malloc((size_t)n * n_vocab * sizeof *z);
    op_write(&r, &s->acts.canvas.ids, 0, canvas, n);
    model_forget(&r, &s->acts);
    model_canvas_rows(&r, m, &s->acts);
    for (uint32_t t = 0; t < n; t++) {
        model_logits(&r, m, &s->acts, t, 1);
        op_read(&r, &s->acts.logits, 0, z + (size_t)t * n_vocab, 1);
    }
    CHECK_MSG(r.status == BZ_OK, "%s", r.err.text);
    return z;
}

/* Every row of the table gets the size that makes the mean square of its scaled embedding 1 - eps:
 * then the canvas's input, rms(e + 0), is e itself. */
static bool norm_table(void *ctx, struct str name, const uint64_t ne[4], float *v)
{
    const double *eps = ctx;
    if (!str_is(name, "token_embd.weight")) return false;
    for (uint64_t row = 0; row < ne[1]; row++, v += ne[0]) {
        double sum = 0;
        for (uint64_t i = 0; i < ne[0]; i++) sum += (double)v[i] * (double)v[i];
        for (uint64_t i = 0; i < ne[0]; i++) v[i] = (float)((double)v[i] * sqrt((1 - *eps) / sum));
    }
    return true;
}

/* A canvas of one row, in a model without self-conditioning, is the text's next word. */
static void check_one_row(enum bz_backend backend)
{
    struct tmp_path text = tmp_path("normed.gguf");
    double eps = 2e-4; /* MOE's */
    copy_model(MOE, text.z, &(struct model_edit) { .change = norm_table, .ctx = &eps });
    bz_engine *plain = open_engine(text.z, backend);
    write_diffusion(path.z, text.z,
                    &(struct diffusion_edit) { .n_canvas = 1, .plain = true, .same_scales = true });
    bz_engine *e = open_engine(path.z, backend);
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    bz_session *words = open_text(plain, 64, N_PREFIX), *s = open_text(e, 64, N_PREFIX);
    int32_t *ids = random_ids(e, 4, 9);
    for (int i = 0; i < 4; i++) {
        struct bz_err err;
        float *got = canvas_logits(s, ids + i);
        CHECK(bz_session_feed(words, ids + i, 1, 1, NULL, NULL, &err) == BZ_OK);
        CHECK(bz_session_feed(s, ids + i, 1, 0, NULL, NULL, &err) == BZ_OK);
        double off = largest_difference(got, bz_session_logits(words), n_vocab);
        CHECK_MSG(off < CLOSE, "off by %g", off);
        free(got);
    }
    free(ids);
    bz_session_close(words);
    bz_session_close(s);
    bz_engine_close(plain);
    bz_engine_close(e);
    unlink(text.z);
    unlink(path.z);
}

/* However the text arrived, and on whichever backend. */
static void check_passes(void)
{
    static const uint32_t pieces[] = { N_PREFIX, 1, 7 };
    bz_engine *e = open_diffusion(&(struct diffusion_edit) { 0 }, BZ_BACKEND_REFERENCE);
    bz_engine *fast = open_diffusion(&(struct diffusion_edit) { 0 }, BZ_BACKEND_CPU);
    size_t n_z = (size_t)N_CANVAS * bz_engine_info(e).n_vocab;
    int32_t *ids = random_ids(e, N_PREFIX, 5), *canvas = random_ids(e, N_CANVAS, 6);
    float *want = NULL;
    for (int i = 0; i < 4; i++) {
        bz_session *s = open_session(i < 3 ? e : fast, 64, i == 0 ? N_PREFIX : 16);
        feed_pieces(s, ids, N_PREFIX, pieces[i % 3]);
        float *got = canvas_logits(s, canvas), *again = canvas_logits(s, canvas);
        CHECK(same_floats(got, again, n_z)); /* a canvas leaves nothing behind */
        if (i == 0) want = got;
        else if (i < 3) CHECK(same_floats(got, want, n_z));
        else CHECK(largest_difference(got, want, n_z) < CLOSE);
        if (i) free(got);
        free(again);
        bz_session_close(s);
    }
    free(want);
    free(ids);
    free(canvas);
    bz_engine_close(e);
    bz_engine_close(fast);
}

/* The encoder's scales change the text's keys, and nothing of the canvas itself. */
static void check_scales(void)
{
    bz_engine *e = open_diffusion(&(struct diffusion_edit) { 0 }, BZ_BACKEND_CPU);
    bz_engine *other =
        open_diffusion(&(struct diffusion_edit) { .other_dialect = true }, BZ_BACKEND_CPU);
    size_t n_z = (size_t)N_CANVAS * bz_engine_info(e).n_vocab;
    int32_t *canvas = random_ids(e, N_CANVAS, 6);
    bz_session *s = open_session(e, 64, 16), *t = open_session(other, 64, 16);
    float *a = canvas_logits(s, canvas), *b = canvas_logits(t, canvas);
    CHECK(same_floats(a, b, n_z)); /* there is no text yet */
    free(a);
    free(b);
    feed_pieces(s, canvas, 9, 9);
    feed_pieces(t, canvas, 9, 9);
    a = canvas_logits(s, canvas);
    b = canvas_logits(t, canvas);
    CHECK(largest_difference(a, b, n_z) > 0.01);
    free(a);
    free(b);
    free(canvas);
    bz_session_close(s);
    bz_session_close(t);
    bz_engine_close(e);
    bz_engine_close(other);
}

/* ---- texts ---- */

enum { MOST_STEPS = 200 };

/* What on_step saw. */
struct log {
    uint32_t n, stop_at; /* stop_at: 0 never */
    struct {
        uint32_t canvas, step, n_accepted;
        enum bz_canvas_stop stopped;
        int32_t ids[N_CANVAS], best[N_CANVAS];
        float entropy[N_CANVAS], mean;
        uint32_t accepted;
    } steps[MOST_STEPS];
};

static bool log_step(void *ctx, const struct bz_canvas *c)
{
    struct log *l = ctx;
    CHECK(l->n < MOST_STEPS && c->n <= N_CANVAS);
    l->steps[l->n].canvas = c->canvas;
    l->steps[l->n].step = c->step;
    l->steps[l->n].n_accepted = c->n_accepted;
    l->steps[l->n].stopped = c->stopped;
    l->steps[l->n].mean = c->mean_entropy;
    l->steps[l->n].accepted = c->accepted[0];
    memcpy(l->steps[l->n].ids, c->ids, c->n * sizeof *c->ids);
    memcpy(l->steps[l->n].best, c->best, c->n * sizeof *c->best);
    memcpy(l->steps[l->n].entropy, c->entropy, c->n * sizeof *c->entropy);
    l->n++;
    return l->n != l->stop_at;
}

struct wish {
    struct bz_diffusion how;
    uint64_t seed;
    uint32_t n_max;
    bool ends;       /* at an end token */
    struct log *log; /* or NULL */
};

static struct wish wish_of(const bz_engine *e, uint32_t n_canvases)
{
    struct wish w = { .how = bz_diffusion_defaults(e), .seed = 3 };
    w.how.n_steps = 6;
    w.how.n_canvases = n_canvases;
    return w;
}

static enum bz_status try_text(bz_session *s, const struct wish *w, struct bz_generated *g,
                               struct bz_err *err)
{
    struct bz_diffusion how = w->how;
    struct bz_generate_options o = { .n_max = w->n_max, .diffusion = &how, .ignore_end = !w->ends };
    o.sampling.seed = w->seed;
    if (w->log) {
        *w->log = (struct log) { .stop_at = w->log->stop_at };
        how.on_step = log_step;
        how.ctx = w->log;
    }
    return bz_generate(s, &o, g, err);
}

static struct bz_generated text_of(bz_session *s, const struct wish *w)
{
    struct bz_generated g = { 0 };
    struct bz_err err = { "" };
    enum bz_status st = try_text(s, w, &g, &err);
    CHECK_MSG(st == BZ_OK, "%s", err.text);
    return g;
}

/* The last n tokens of two sessions are the same. */
static bool same_tokens(const bz_session *a, const bz_session *b)
{
    size_t n, m;
    const int32_t *x = bz_session_tokens(a, &n), *y = bz_session_tokens(b, &m);
    return n == m && memcmp(x, y, n * sizeof *x) == 0;
}

static void check_seeds(bz_engine *e)
{
    struct wish w = wish_of(e, 2);
    bz_session *a = open_text(e, 128, 5), *b = open_text(e, 128, 5), *c = open_text(e, 128, 5);
    struct bz_generated g = text_of(a, &w);
    CHECK(g.first == 5 && g.n == 2 * N_CANVAS && g.n_canvases == 2 && g.n_steps == 12);
    CHECK(g.stop == BZ_STOP_LENGTH);
    text_of(b, &w);
    CHECK(same_tokens(a, b));
    w.seed++;
    text_of(c, &w);
    CHECK(!same_tokens(a, c));
    bz_session_close(a);
    bz_session_close(b);
    bz_session_close(c);
}

/* The cache holds what the session says: as if the text had been fed. And two canvases are one
 * canvas after another. */
static void check_cache(bz_engine *e)
{
    struct wish two = wish_of(e, 2), one = wish_of(e, 1);
    bz_session *a = open_text(e, 128, 20), *b = open_text(e, 128, 20), *c;
    int32_t *canvas = random_ids(e, N_CANVAS, 6);
    text_of(a, &two);
    text_of(b, &one);
    text_of(b, &one);
    CHECK(same_tokens(a, b));
    size_t n;
    const int32_t *tokens = bz_session_tokens(a, &n);
    c = open_session(e, 128, 16);
    feed_pieces(c, tokens, n, n);
    float *got = canvas_logits(a, canvas), *want = canvas_logits(c, canvas);
    CHECK(same_floats(got, want, (size_t)N_CANVAS * bz_engine_info(e).n_vocab));
    free(got);
    free(want);
    free(canvas);
    bz_session_close(a);
    bz_session_close(b);
    bz_session_close(c);
}

/* ---- scripts ---- */

/* n canvases of tokens below 300, to be freed. */
static int32_t *script_of(size_t n, uint64_t seed)
{
    struct rng rng = { seed };
    int32_t *ids = malloc(n * N_CANVAS * sizeof *ids);
    for (size_t i = 0; i < n * N_CANVAS; i++) ids[i] = (int32_t)rng_below(&rng, 300);
    return ids;
}

/* What a step accepts is the script's draw, and the rest its random token. With the tokens given,
 * both backends go the same way; a random network multiplies a difference by 5 to 10 a step. */
static void check_script(bz_engine *e, bz_engine *other)
{
    enum { STEPS = 4, CANVASES = 3 };
    struct wish w = wish_of(e, CANVASES);
    struct log *log = malloc(sizeof *log), *log2 = malloc(sizeof *log);
    w.how.n_steps = STEPS;
    w.how.entropy_bound = 40; /* a third of what all have */
    w.how.n_random = CANVASES * (STEPS + 1);
    w.how.n_sampled = CANVASES * STEPS;
    int32_t *random = script_of(w.how.n_random, 1), *sampled = script_of(w.how.n_sampled, 2);
    w.how.random = random;
    w.how.sampled = sampled;
    bz_session *s = open_text(e, 128, 20), *t = open_text(other, 128, 20);
    log->stop_at = log2->stop_at = 0;
    w.log = log;
    text_of(s, &w);
    w.log = log2;
    text_of(t, &w);
    uint32_t n_mixed = 0;
    CHECK(log->n == CANVASES * STEPS && log2->n == log->n && same_tokens(s, t));
    for (uint32_t k = 0; k < log->n && k < log2->n; k++) {
        const int32_t *fresh = random + (size_t)N_CANVAS * (k + 1 + k / STEPS);
        const int32_t *drawn = sampled + (size_t)N_CANVAS * k;
        CHECK(log->steps[k].accepted == log2->steps[k].accepted);
        CHECK(memcmp(log->steps[k].best, log2->steps[k].best, sizeof log->steps[k].best) == 0);
        for (uint32_t i = 0; i < N_CANVAS; i++) {
            bool accepted = log->steps[k].accepted >> i & 1;
            CHECK(log->steps[k].ids[i] == (accepted ? drawn : fresh)[i]);
            CHECK(fabsf(log->steps[k].entropy[i] - log2->steps[k].entropy[i]) < 1e-2f);
        }
        n_mixed += log->steps[k].n_accepted > 1 && log->steps[k].n_accepted < N_CANVAS;
    }
    CHECK(n_mixed > 3);
    free(log);
    free(log2);
    free(random);
    free(sampled);
    bz_session_close(s);
    bz_session_close(t);
}

static void check_short_script(bz_engine *e)
{
    struct wish w = wish_of(e, 1);
    struct bz_generated g = { 0 };
    struct bz_err err = { "" };
    int32_t *ids = script_of(3, 1);
    bz_session *s = open_text(e, 128, 20);
    w.how.sampled = ids;
    w.how.n_sampled = 3;
    CHECK(try_text(s, &w, &g, &err) == BZ_ERR_ARGUMENT && g.n == 0);
    CHECK_STR(err.text, "the script has 3 draws, and this step needs another");
    w.how.sampled = NULL;
    w.how.random = ids;
    w.how.n_random = 3;
    CHECK(try_text(s, &w, &g, &err) == BZ_ERR_ARGUMENT);
    CHECK_STR(err.text, "the script has 3 random canvases, and this step needs another");
    ids[70] = (int32_t)bz_engine_info(e).n_vocab;
    CHECK(try_text(s, &w, &g, &err) == BZ_ERR_ARGUMENT);
    CHECK_STR(err.text, "token id 311 in the random canvases; this vocabulary ends at 310");
    size_t n;
    bz_session_tokens(s, &n);
    CHECK(n == 20);
    free(ids);
    bz_session_close(s);
}

/* ---- fixed positions, and when a canvas is finished ---- */

static void check_fixed(bz_engine *e)
{
    struct wish w = wish_of(e, 1);
    struct log *log = malloc(sizeof *log);
    int32_t *canvas = random_ids(e, N_CANVAS, 8);
    bool fixed[N_CANVAS];
    log->stop_at = 0;
    for (int i = 0; i < N_CANVAS; i++) fixed[i] = i % 4 != 1;
    w.how.canvas = canvas;
    w.how.fixed = fixed;
    w.log = log;
    bz_session *s = open_text(e, 128, 5);
    text_of(s, &w);
    for (uint32_t k = 0; k < log->n; k++) {
        double sum = 0;
        for (uint32_t i = 0; i < N_CANVAS; i++) {
            sum += (double)log->steps[k].entropy[i];
            if (!fixed[i]) continue;
            CHECK(log->steps[k].ids[i] == canvas[i] && log->steps[k].best[i] == canvas[i]);
            CHECK(log->steps[k].entropy[i] == 0 && log->steps[k].accepted >> i & 1);
        }
        CHECK(fabs(sum / 6 - (double)log->steps[k].mean) < 1e-5);
    }
    CHECK(log->n == 6 && log->steps[5].stopped == BZ_CANVAS_STEPS);
    const int32_t *tokens = bz_session_tokens(s, NULL) + 5;
    CHECK(memcmp(tokens, log->steps[5].best, sizeof log->steps[5].best) == 0);
    free(canvas);
    free(log);
    bz_session_close(s);
}

/* A canvas of fixed positions is certain and never changes, so it stops as soon as it may: after
 * k + 1 steps. */
static void check_stability(bz_engine *e)
{
    struct wish w = wish_of(e, 1);
    struct log *log = malloc(sizeof *log);
    int32_t *canvas = random_ids(e, N_CANVAS, 8);
    bool fixed[N_CANVAS];
    log->stop_at = 0;
    for (int i = 0; i < N_CANVAS; i++) fixed[i] = true;
    w.how.canvas = canvas;
    w.how.fixed = fixed;
    w.log = log;
    for (uint32_t k = 0; k < 5; k++) {
        bz_session *s = open_text(e, 128, 5);
        w.how.n_stable = k;
        struct bz_generated g = text_of(s, &w);
        CHECK(g.n == N_CANVAS && log->n == k + 1 && log->steps[k].step == k + 1);
        CHECK(log->steps[k].stopped == BZ_CANVAS_STABLE);
        CHECK(memcmp(bz_session_tokens(s, NULL) + 5, canvas, g.n * sizeof *canvas) == 0);
        bz_session_close(s);
    }
    w.how.confidence = 0; /* below which nothing is */
    bz_session *s = open_text(e, 128, 5);
    text_of(s, &w);
    CHECK(log->n == 6 && log->steps[5].stopped == BZ_CANVAS_STEPS);
    bz_session_close(s);
    free(canvas);
    free(log);
}

/* ---- ends ---- */

static void check_end_token(bz_engine *e)
{
    int32_t *end;
    size_t n;
    struct bz_err err;
    CHECK(bz_tokenize(e, "<turn|>", 7, false, false, &end, &n, &err) == BZ_OK && n == 1);
    struct wish w = wish_of(e, 3);
    int32_t *canvas = script_of(1, 4);
    bool fixed[N_CANVAS];
    for (int i = 0; i < N_CANVAS; i++) {
        fixed[i] = true;
        if (canvas[i] == *end) canvas[i]++;
    }
    canvas[9] = canvas[15] = *end;
    w.how.canvas = canvas;
    w.how.fixed = fixed;
    w.ends = true;
    bz_session *s = open_text(e, 128, 5);
    struct bz_generated g = text_of(s, &w);
    size_t n_all;
    const int32_t *tokens = bz_session_tokens(s, &n_all);
    CHECK(g.stop == BZ_STOP_END && g.n == 10 && n_all == 15 && g.n_canvases == 1);
    CHECK(memcmp(tokens + 5, canvas, 10 * sizeof *canvas) == 0);
    w.n_max = 7;
    bz_session *t = open_text(e, 128, 5);
    g = text_of(t, &w);
    bz_session_tokens(t, &n_all);
    CHECK(g.stop == BZ_STOP_LENGTH && g.n == 7 && n_all == 12);
    bz_session_close(s);
    bz_session_close(t);
    free(canvas);
    bz_free(end);
}

/* Of the last canvas a context takes as many tokens as fit: those that a larger one has there. */
static void check_full(bz_engine *e)
{
    enum { ROOM = 2 * N_CANVAS - 7 };
    struct wish w = wish_of(e, 0), two = wish_of(e, 2);
    bz_session *s = open_text(e, 5 + ROOM, 5), *t = open_text(e, 128, 5);
    struct bz_generated g = text_of(s, &w);
    CHECK(g.stop == BZ_STOP_CONTEXT && g.n == ROOM && g.n_canvases == 2);
    text_of(t, &two);
    CHECK(memcmp(bz_session_tokens(s, NULL), bz_session_tokens(t, NULL), (5 + ROOM) * 4) == 0);
    g = text_of(s, &w);
    CHECK(g.stop == BZ_STOP_CONTEXT && g.n == 0 && g.n_steps == 0);
    bz_session_close(s);
    bz_session_close(t);
}

/* Who stops in the middle of a canvas has the text before it, and can go on as if nothing was. */
static void check_cancel(bz_engine *e)
{
    struct wish w = wish_of(e, 2), plain = w;
    struct log *log = malloc(sizeof *log);
    log->stop_at = 8;
    w.log = log;
    bz_session *s = open_text(e, 128, 5), *t = open_text(e, 128, 5);
    struct bz_generated g = text_of(s, &w);
    size_t n;
    bz_session_tokens(s, &n);
    CHECK(g.stop == BZ_STOP_CANCELLED && g.n == N_CANVAS && g.n_steps == 8 && n == 5 + N_CANVAS);
    plain.how.n_canvases = 1;
    text_of(s, &plain);
    plain.how.n_canvases = 2;
    text_of(t, &plain);
    CHECK(same_tokens(s, t));
    free(log);
    bz_session_close(s);
    bz_session_close(t);
}

/* How often a session asked whether to go on, and at which time the answer is no; 0: never. */
struct asked {
    int n, stop_at;
};

static bool ask(void *ctx)
{
    struct asked *a = ctx;
    return ++a->n != a->stop_at;
}

/* Wherever in a step of a canvas or in its reading it is stopped, the session has whole canvases
 * and goes on as if nothing was. */
static void check_stop_within(bz_engine *e)
{
    enum { MOST_ASKED = 4000 };
    struct asked asked = { 0 };
    struct bz_session_options o = { .n_context = 128, .n_batch = 16, .go_on = ask, .ctx = &asked };
    struct wish w = wish_of(e, 2);
    struct bz_err err = { "" };
    bz_session *s = NULL, *t = open_text(e, 128, 5);
    int32_t *ids = random_ids(e, 5, 5);
    w.how.n_steps = 2;
    text_of(t, &w);
    CHECK(bz_session_open(&s, e, &o, &err) == BZ_OK);
    feed_pieces(s, ids, 5, 5);
    asked.n = 0;
    text_of(s, &w);
    CHECK(same_tokens(s, t));
    int total = asked.n, stops[3] = { 0 };
    CHECK(total > 4 * 20 * (int)e->model.config.n_layer && total < MOST_ASKED);
    for (int at = 1; at < total; at += total / 40) {
        size_t n;
        bz_session_truncate(s, 5, NULL, NULL);
        asked = (struct asked) { .stop_at = at };
        struct bz_generated g = text_of(s, &w);
        bz_session_tokens(s, &n);
        CHECK(asked.n == at && g.stop == BZ_STOP_CANCELLED && g.n % N_CANVAS == 0);
        CHECK(n == 5 + g.n &&
              memcmp(bz_session_tokens(s, NULL), bz_session_tokens(t, NULL), n * sizeof *ids) == 0);
        stops[g.n / N_CANVAS]++;
        struct wish rest = w;
        rest.how.n_canvases = 2 - (uint32_t)g.n / N_CANVAS;
        text_of(s, &rest);
        CHECK(same_tokens(s, t));
    }
    CHECK(stops[0] > 5 && stops[1] > 5);
    asked = (struct asked) { .stop_at = 7 };
    CHECK(bz_session_feed(s, ids, 5, 0, NULL, NULL, &err) == BZ_ERR_CANCELLED);
    CHECK_STR(err.text, "stopped on request");
    CHECK(same_tokens(s, t));
    free(ids);
    bz_session_close(s);
    bz_session_close(t);
}

/* ---- what else a session does ---- */

static void check_snapshot(bz_engine *e)
{
    struct wish w = wish_of(e, 1);
    bz_session *s = open_text(e, 128, 20), *t = open_session(e, 128, 16);
    void *data;
    size_t n;
    struct bz_err err = { "" };
    text_of(s, &w);
    CHECK_MSG(bz_session_save(s, &data, &n, &err) == BZ_OK, "%s", err.text);
    CHECK_MSG(bz_session_restore(t, data, n, &err) == BZ_OK, "%s", err.text);
    text_of(s, &w);
    text_of(t, &w);
    CHECK(same_tokens(s, t));
    bz_free(data);
    bz_session_close(s);
    bz_session_close(t);
}

/* A conversation goes on: what is in the cache is not read again. */
static void check_set(bz_engine *e)
{
    struct wish w = wish_of(e, 1);
    bz_session *s = open_text(e, 128, 20), *t = open_session(e, 128, 16);
    struct bz_err err = { "" };
    uint32_t kept = 0;
    text_of(s, &w);
    size_t n;
    const int32_t *tokens = bz_session_tokens(s, &n);
    int32_t more[64];
    memcpy(more, tokens, n * sizeof *more);
    CHECK(session_keep(s, more, n, &kept, &err) == BZ_OK && kept == n);
    for (int i = 0; i < 4; i++) more[n + (size_t)i] = 40 + i;
    CHECK(session_keep(s, more, n + 4, &kept, &err) == BZ_OK && kept == n);
    CHECK(bz_session_set(s, more, n + 4, &err) == BZ_OK);
    CHECK(bz_session_set(t, more, n + 4, &err) == BZ_OK);
    text_of(s, &w);
    text_of(t, &w);
    CHECK(same_tokens(s, t));
    bz_session_close(s);
    bz_session_close(t);
}

/* The entropies of some steps, with these adapters. */
static void steps_with(bz_engine *e, const struct lora_spec *spec, struct log *log)
{
    struct tmp_path adapter = tmp_path("self.gguf");
    struct wish w = wish_of(e, 1);
    struct bz_err err = { "" };
    int id;
    int32_t *random = script_of(7, 1), *sampled = script_of(6, 2);
    write_adapter_for(adapter.z, "diffusion-gemma", 8, spec, 1);
    CHECK_MSG(bz_adapter_add(e, adapter.z, 1, &id, &err) == BZ_OK, "%s", err.text);
    bz_session *s = open_text(e, 128, 20);
    log->stop_at = 0;
    w.log = log;
    w.how.random = random;
    w.how.n_random = 7;
    w.how.sampled = sampled;
    w.how.n_sampled = 6;
    text_of(s, &w);
    CHECK(bz_adapter_remove(e, id, &err) == BZ_OK);
    bz_session_close(s);
    free(random);
    free(sampled);
    unlink(adapter.z);
}

/* One of the self-conditioning changes nothing in the first step, when there is nothing to think
 * of, and everything after it. */
static void check_adapters(bz_engine *e)
{
    struct log *zero = malloc(sizeof *zero), *self = malloc(sizeof *self);
    struct log *query = malloc(sizeof *query);
    struct lora_spec spec = { "self_cond_gate.weight", 64, SELF_WIDTH, 1, 4, 3, 0 };
    steps_with(e, &spec, zero);
    spec.b_size = 2;
    steps_with(e, &spec, self);
    steps_with(e, &(struct lora_spec) { "blk.1.attn_q.weight", 64, 128, 1, 4, 3, 2 }, query);
    for (int k = 0; k < 3; k++) {
        const float *a = zero->steps[k].entropy, *b = self->steps[k].entropy;
        CHECK((largest_difference(a, b, N_CANVAS) > 1e-4) == (k > 0));
        CHECK(largest_difference(a, query->steps[k].entropy, N_CANVAS) > 1e-4);
    }
    free(zero);
    free(self);
    free(query);
}

/* ---- what makes no sense ---- */

static bool on_logits(void *ctx, uint32_t position, const float *z)
{
    (void)ctx, (void)position, (void)z;
    return true;
}

static void check_sentences(bz_engine *e)
{
    struct wish w = wish_of(e, 1);
    struct bz_generated g;
    struct bz_err err = { "" };
    int32_t id = 3;
    bool fixed[N_CANVAS] = { 0 };
    bz_session *s = open_session(e, 128, 16);
    CHECK(try_text(s, &w, &g, &err) == BZ_ERR_ARGUMENT);
    CHECK_STR(err.text, "feed at least one token before a canvas");
    CHECK(bz_session_feed(s, &id, 1, 1, on_logits, NULL, &err) == BZ_ERR_UNSUPPORTED);
    CHECK_STR(err.text, "this model denoises a canvas; its text has no logits");
    CHECK(bz_session_feed(s, &id, 1, 1, NULL, NULL, &err) == BZ_OK && !bz_session_logits(s));
    CHECK(bz_session_sample(s, NULL, &id, &err) == BZ_ERR_UNSUPPORTED);
    CHECK_STR(err.text, "this model denoises a canvas of 24 tokens; it draws no next token");
    w.how.fixed = fixed;
    CHECK(try_text(s, &w, &g, &err) == BZ_ERR_ARGUMENT);
    CHECK_STR(err.text, "fixed positions need the canvas that they are of");
    w = wish_of(e, 1);
    w.how.n_steps = 0;
    CHECK(try_text(s, &w, &g, &err) == BZ_ERR_ARGUMENT);
    CHECK_STR(err.text, "steps 0; it must be between 1 and 1024");
    w = wish_of(e, 1);
    w.how.t_min = 0;
    CHECK(try_text(s, &w, &g, &err) == BZ_ERR_ARGUMENT);
    CHECK_STR(err.text, "temperature 0; it must be between 0.01 and 100");
    w = wish_of(e, 1);
    w.how.confidence = NAN;
    CHECK(try_text(s, &w, &g, &err) == BZ_ERR_ARGUMENT);
    struct trainer trainer;
    struct dataset data = { 0 };
    const struct train_options train = {
        .n_steps = 1, .n_batch = 1, .lr = 1e-3f, .adapter.rank = 4
    };
    CHECK(trainer_open(&trainer, &e->model, &e->backend, &data, &train, &err) != BZ_OK);
    CHECK_MSG(strncmp(err.text, "this model denoises canvases", 28) == 0, "%s", err.text);
    bz_session_close(s);
}

/* ---- files ---- */

static void refused(const struct diffusion_edit *edit, const char *want)
{
    struct diffusion_edit with = *edit;
    struct bz_err err = { "" };
    bz_engine *e = NULL;
    if (!with.n_canvas) with.n_canvas = N_CANVAS;
    write_diffusion(path.z, MOE, &with);
    CHECK(bz_engine_open(&e, path.z, NULL, &err) != BZ_OK);
    const char *said = strstr(err.text, ": ");
    CHECK_STR(said ? said + 2 : err.text, want);
    unlink(path.z);
}

static void check_files(void)
{
    static const char *const needed[] = { "self_cond_pre_norm.weight", "self_cond_gate.weight",
                                          "self_cond_up.weight", "self_cond_down.weight" };
    for (int i = 0; i < 4; i++) {
        char want[80];
        snprintf(want, sizeof want, "tensor %s is missing", needed[i]);
        refused(&(struct diffusion_edit) { .drop = needed[i] }, want);
    }
    refused(&(struct diffusion_edit) { .n_canvas = 4097 },
            "diffusion.canvas_length is 4097; it must be between 1 and 4096");
    refused(&(struct diffusion_edit) { .n_context = 20 },
            "a canvas of 24 tokens in a context of 20");
    refused(&(struct diffusion_edit) { .key = { "diffusion.eb_max_steps" } },
            "diffusion.eb_max_steps is 0; it must be between 1 and 1024");
    refused(&(struct diffusion_edit) { .key = { "diffusion.eb_t_min" }, .number = { NAN } },
            "diffusion.eb_t_min is nan; it must be between 0.01 and 100");
    refused(&(struct diffusion_edit) { .key = { "diffusion.eb_entropy_bound" }, .number = { -1 } },
            "diffusion.eb_entropy_bound is -1; it must be between 0 and 1e+06");
    refused(&(struct diffusion_edit) { .key = { "diffusion.shift_logits" }, .number = { 1 } },
            "diffusion.shift_logits is true; this build runs canvases whose row i is the token at "
            "i");
}

static void check_metadata(void)
{
    bz_engine *e = open_diffusion(&(struct diffusion_edit) { 0 }, BZ_BACKEND_CPU);
    struct bz_diffusion d = bz_diffusion_defaults(e);
    CHECK(bz_engine_info(e).n_canvas == N_CANVAS && d.n_steps == 48 && d.n_stable == 1);
    CHECK(d.t_min == 0.4f && d.t_max == 0.8f && d.entropy_bound == 0.1f && d.confidence == 0.005f);
    bz_engine_close(e);
    e = open_diffusion(
        &(struct diffusion_edit) { .key = { "diffusion.eb_max_steps",
                                            "diffusion.eb_stability_threshold",
                                            "diffusion.eb_t_max", "diffusion.shift_logits" },
                                   .number = { 7, 2, 1.5, 0 } },
        BZ_BACKEND_CPU);
    d = bz_diffusion_defaults(e);
    CHECK(d.n_steps == 7 && d.n_stable == 2 && d.t_max == 1.5f && d.t_min == 0.4f);
    bz_engine_close(e);
}

int main(void)
{
    path = tmp_path("diffusion.gguf");
    int64_t live = mem_live();
    TEST("missing settings have defaults, and those of the file count") check_metadata();
    TEST("a file that makes no sense is refused with a sentence") check_files();
    TEST("a canvas of one row is the text's next word")
    {
        check_one_row(BZ_BACKEND_REFERENCE);
        check_one_row(BZ_BACKEND_CPU);
    }
    TEST("a canvas sees the same text however it was read, and leaves nothing behind")
    check_passes();
    TEST("the encoder has scales of its own, or those of the canvas") check_scales();
    bz_engine *e = open_diffusion(&(struct diffusion_edit) { 0 }, BZ_BACKEND_REFERENCE);
    bz_engine *fast = open_diffusion(&(struct diffusion_edit) { 0 }, BZ_BACKEND_CPU);
    TEST("the same seed gives the same text") check_seeds(e);
    TEST("the cache holds the session's tokens") check_cache(e);
    TEST("a script's tokens are used, and both backends go the same way") check_script(e, fast);
    TEST("a script that is too short or has other tokens is an error") check_short_script(e);
    TEST("fixed positions stay, and are certain") check_fixed(e);
    TEST("stability k needs k + 1 canvases that are alike") check_stability(e);
    TEST("a text ends after its first end token, or where no more is wanted") check_end_token(e);
    TEST("a full context ends a text") check_full(e);
    TEST("a canvas that is stopped is dropped") check_cancel(e);
    TEST("a step is stopped within")
    {
        check_stop_within(e);
        check_stop_within(fast);
    }
    TEST("a snapshot goes on like the session") check_snapshot(e);
    TEST("a conversation goes on from its cache") check_set(e);
    TEST("adapters change the self-conditioning and the layers") check_adapters(fast);
    TEST("what a canvas cannot do is a sentence") check_sentences(fast);
    bz_engine_close(e);
    bz_engine_close(fast);
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
