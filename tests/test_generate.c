/* test_generate.c - drawing tokens and turning them into text, on models that speak nonsense. */
#include "base/utf8.h"
#include "model_fixture.h"

enum { CONTEXT = 200, MAX_STRINGS = 2 };

/* What the callback received. */
struct sink {
    struct buf text;
    int n_pieces, stop_at; /* false after so many pieces; 0: never */
};

static bool on_text(void *ctx, const char *text, size_t n)
{
    struct sink *k = ctx;
    CHECK(n > 0);
    for (size_t i = 0, used; i < n; i += used)
        CHECK(
            !(utf8_decode(text + i, n - i, &used) == 0xfffd && used == 1)); /* whole code points */
    buf_put(&k->text, text, n);
    return ++k->n_pieces != k->stop_at;
}

/* Options for text of n tokens that does not end by itself. */
static struct bz_generate_options wild(const bz_engine *e, struct sink *k, uint32_t n,
                                       uint64_t seed)
{
    struct bz_generate_options o = bz_generate_defaults(e);
    o.n_max = n;
    o.ignore_end = true;
    o.sampling.seed = seed;
    o.on_text = on_text;
    o.ctx = k;
    return o;
}

static struct bz_generated generate(bz_session *s, const struct bz_generate_options *o)
{
    struct bz_generated g = { 0 };
    struct bz_err err = { "" };
    CHECK_MSG(bz_generate(s, o, &g, &err) == BZ_OK, "%s", err.text);
    return g;
}

static void restart(bz_session *s)
{
    CHECK(bz_session_truncate(s, 0, NULL, NULL) == BZ_OK);
    CHECK(bz_session_feed_text(s, "ab", NULL) == BZ_OK);
}

/* The text of a fresh generation, to be freed with buf_free. */
static struct buf text_of(bz_session *s, struct bz_generate_options o, struct bz_generated *g)
{
    struct sink k = { 0 };
    restart(s);
    o.ctx = &k;
    struct bz_generated done = generate(s, &o);
    if (g) *g = done;
    buf_put(&k.text, "", 0);
    return k.text;
}

static bool same_text(struct buf a, struct buf b)
{
    return str_eq(buf_str(&a), buf_str(&b));
}

/* ---- seeds, lengths ---- */

static void check_seed(bz_engine *e)
{
    bz_session *s = open_session(e, CONTEXT, 16);
    struct bz_generated g;
    struct buf a = text_of(s, wild(e, NULL, 40, 1), &g);
    size_t n;
    const int32_t *ids = bz_session_tokens(s, &n);
    CHECK(g.n == 40 && g.stop == BZ_STOP_LENGTH && g.first + g.n == n);
    char *shown;
    size_t n_shown;
    CHECK(!bz_detokenize(e, ids + g.first, g.n, false, &shown, &n_shown, NULL));
    CHECK(str_eq((struct str) { shown, n_shown }, buf_str(&a)));
    struct buf b = text_of(s, wild(e, NULL, 40, 1), NULL),
               c = text_of(s, wild(e, NULL, 40, 2), NULL);
    CHECK(same_text(a, b) && !same_text(a, c) && a.n > 0);
    bz_free(shown);
    buf_free(&a);
    buf_free(&b);
    buf_free(&c);
    bz_session_close(s);
}

/* Stopping and going on, or stepping back and drawing again, gives the same tokens. */
static void check_resume(bz_engine *e)
{
    bz_session *s = open_session(e, CONTEXT, 16);
    struct sink k = { 0 };
    struct bz_generate_options o = wild(e, &k, 30, 5);
    restart(s);
    struct bz_generated g = generate(s, &o);
    int32_t want[30];
    memcpy(want, bz_session_tokens(s, NULL) + g.first, sizeof want);
    restart(s);
    for (uint32_t n = 1; n < 30; n += n) {
        o.n_max = n;
        generate(s, &o);
    }
    CHECK(memcmp(bz_session_tokens(s, NULL) + g.first, want, sizeof want) == 0);
    uint32_t back = (uint32_t)g.first + 11;
    CHECK(bz_session_truncate(s, back - 1, NULL, NULL) == BZ_OK);
    CHECK(bz_session_feed(s, &want[10], 1, 1, NULL, NULL, NULL) == BZ_OK);
    o.n_max = 19;
    generate(s, &o);
    CHECK(memcmp(bz_session_tokens(s, NULL) + g.first, want, sizeof want) == 0);
    buf_free(&k.text);
    bz_session_close(s);
}

/* The draw is numbered by the position. At a temperature that makes all tokens equally likely, the
 * rank of the token drawn is the random number itself. */
static void check_positions(bz_engine *e)
{
    enum { STEPS = 20 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab, ranks[STEPS] = { 0 }, n_new = 0;
    bz_session *s = open_session(e, CONTEXT, 16);
    struct bz_sampling p = { .repeat_penalty = 1, .top_p = 1, .temperature = 1e30f, .seed = 2 };
    restart(s);
    for (int i = 0; i < STEPS; i++) {
        int32_t id = 0;
        const float *z = bz_session_logits(s);
        CHECK(bz_session_sample(s, &p, &id, NULL) == BZ_OK);
        for (uint32_t v = 0; v < n_vocab; v++) ranks[i] += z[v] > z[id];
        bool is_new = true;
        for (int k = 0; k < i; k++) is_new &= ranks[k] != ranks[i];
        n_new += is_new;
        feed_pieces(s, &id, 1, 1);
    }
    CHECK_MSG(n_new >= STEPS - 5, "%u different random numbers in %d draws", n_new, STEPS);
    bz_session_close(s);
}

static void check_greedy(bz_engine *e)
{
    enum { STEPS = 20 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    bz_session *s = open_session(e, CONTEXT, 16);
    int32_t want[STEPS];
    restart(s);
    for (int i = 0; i < STEPS; i++) {
        const float *z = bz_session_logits(s);
        want[i] = 0;
        for (uint32_t v = 1; v < n_vocab; v++)
            if (z[v] > z[want[i]]) want[i] = (int32_t)v;
        feed_pieces(s, &want[i], 1, 1);
    }
    struct sink k = { 0 };
    struct bz_generate_options o = wild(e, &k, STEPS, 9);
    o.sampling.temperature = 0;
    restart(s);
    struct bz_generated g = generate(s, &o);
    CHECK(memcmp(bz_session_tokens(s, NULL) + g.first, want, sizeof want) == 0);
    buf_free(&k.text);
    bz_session_close(s);
}

/* ---- ends ---- */

static void check_context(bz_engine *e)
{
    bz_session *s = open_session(e, 20, 16);
    struct sink k = { 0 };
    struct bz_generate_options o = wild(e, &k, 0, 3);
    restart(s);
    struct bz_generated g = generate(s, &o);
    size_t n;
    bz_session_tokens(s, &n);
    CHECK(g.stop == BZ_STOP_CONTEXT && n == 20 && g.n == 20 - g.first);
    g = generate(s, &o);
    CHECK(g.stop == BZ_STOP_CONTEXT && g.n == 0 && g.first == 20);
    restart(s);
    o.n_max = 3;
    CHECK(generate(s, &o).stop == BZ_STOP_LENGTH);
    buf_free(&k.text);
    bz_session_close(s);
}

/* The vocabulary's <eos>, found by its text. */
static int32_t find_eos(const bz_engine *e)
{
    int32_t *ids = NULL, id = -1;
    size_t n = 0;
    CHECK(bz_tokenize(e, "<eos>", 5, false, false, &ids, &n, NULL) == BZ_OK && n == 1);
    if (n == 1) id = ids[0];
    bz_free(ids);
    return id;
}

static void check_end(bz_engine *e)
{
    bz_session *s = open_session(e, CONTEXT, 16);
    struct bz_bias bias = { find_eos(e), 1000 };
    struct sink k = { 0 };
    struct bz_generate_options o = wild(e, &k, 10, 3);
    struct bz_err err = { "" };
    o.sampling.bias = &bias;
    o.sampling.n_bias = 1;
    o.ignore_end = false;
    restart(s);
    struct bz_generated g = generate(s, &o);
    CHECK(g.stop == BZ_STOP_END && g.n == 1 && k.text.n == 0);
    size_t n;
    CHECK(bz_session_tokens(s, &n)[g.first] == bias.id && n == g.first + 1);
    CHECK(bz_generate(s, &o, &g, &err) == BZ_ERR_ARGUMENT &&
          err.text[0]); /* nothing to draw from */
    o.ignore_end = true;
    restart(s);
    g = generate(s, &o);
    CHECK(g.stop == BZ_STOP_LENGTH && g.n == 10 && k.text.n == 0);
    o.specials = true;
    restart(s);
    generate(s, &o);
    CHECK(k.text.n == 10 * strlen("<eos>") && memcmp(k.text.data, "<eos><eos>", 10) == 0);
    buf_free(&k.text);
    bz_session_close(s);
}

/* Every run of one to six characters of a text, as a stop string: the text ends at its first place,
 * wherever the tokens' borders are. */
static void check_stop_strings(bz_engine *e)
{
    bz_session *s = open_session(e, CONTEXT, 16);
    struct bz_generated g;
    struct buf all = text_of(s, wild(e, NULL, 40, 4), NULL);
    size_t starts[256], n_starts = 0;
    for (size_t i = 0; i <= all.n && n_starts < 256; i++)
        if (i == all.n || ((unsigned char)all.data[i] & 0xc0) != 0x80) starts[n_starts++] = i;
    CHECK(n_starts > 30);
    for (size_t a = 0; a + 6 < n_starts; a++) {
        size_t length = 1 + a % 6, from = starts[a], to = starts[a + length];
        char stop[64] = "";
        memcpy(stop, all.data + from, to - from);
        if (strlen(stop) != to - from) continue; /* a NUL byte cannot be part of a stop string */
        const char *strings[MAX_STRINGS] = { "\x01 never \x02", stop };
        struct bz_generate_options o = wild(e, NULL, 40, 4);
        o.stop = strings;
        o.n_stop = MAX_STRINGS;
        struct buf cut = text_of(s, o, &g);
        size_t at = 0;
        while (memcmp(all.data + at, stop, to - from) != 0) at++;
        CHECK(g.stop == BZ_STOP_STRING && g.n <= 40);
        CHECK_MSG(cut.n == at && memcmp(cut.data, all.data, at) == 0, "stop at %zu: got %zu bytes",
                  at, cut.n);
        buf_free(&cut);
    }
    /* One that almost comes at the very end holds text back, and lets it go. */
    char almost[64] = "";
    memcpy(almost, all.data + starts[n_starts - 4], all.n - starts[n_starts - 4]);
    strcat(almost, "!?");
    struct bz_generate_options o = wild(e, NULL, 40, 4);
    o.stop = (const char *[]) { almost };
    o.n_stop = 1;
    struct buf whole = text_of(s, o, &g);
    CHECK(g.stop == BZ_STOP_LENGTH && same_text(whole, all));
    buf_free(&whole);
    buf_free(&all);
    bz_session_close(s);
}

static void check_cancel(bz_engine *e)
{
    bz_session *s = open_session(e, CONTEXT, 16);
    struct buf all = text_of(s, wild(e, NULL, 40, 6), NULL);
    for (int stop_at = 1; stop_at < 10; stop_at += 4) {
        struct sink k = { .stop_at = stop_at };
        struct bz_generate_options o = wild(e, &k, 40, 6);
        restart(s);
        struct bz_generated g = generate(s, &o);
        CHECK(g.stop == BZ_STOP_CANCELLED && k.n_pieces == stop_at && g.n < 40);
        CHECK(memcmp(k.text.data, all.data, k.text.n) == 0);
        o.n_max = 40 - (uint32_t)g.n; /* the tokens are there; go on */
        k.stop_at = 0;
        CHECK(generate(s, &o).stop == BZ_STOP_LENGTH);
        size_t n;
        bz_session_tokens(s, &n);
        CHECK(n == g.first + 40);
        buf_free(&k.text);
    }
    buf_free(&all);
    bz_session_close(s);
}

/* ---- what is never drawn ---- */

/* The file's own list wins over any wish. */
static void check_suppress(const char *model)
{
    enum { N_SUPPRESS = 30 };
    bz_engine *e = open_engine(model, BZ_BACKEND_CPU);
    bz_session *s = open_session(e, CONTEXT, 16);
    int32_t banned[N_SUPPRESS];
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    restart(s);
    float *z = keep_logits(s, n_vocab);
    for (int i = 0; i < N_SUPPRESS; i++) { /* the tokens it would most like to say */
        int32_t best = 0;
        for (uint32_t v = 1; v < n_vocab; v++)
            if (z[v] > z[best]) best = (int32_t)v;
        banned[i] = best;
        z[best] = -1e9f;
    }
    free(z);
    bz_session_close(s);
    bz_engine_close(e);

    struct tmp_path path = tmp_path("suppress.gguf");
    struct model_edit edit = { .suppress = banned, .n_suppress = N_SUPPRESS };
    copy_model(model, path.z, &edit);
    e = open_engine(path.z, BZ_BACKEND_CPU);
    s = open_session(e, CONTEXT, 16);
    struct bz_bias wish = { banned[0], 50 };
    for (int greedy = 0; greedy < 2; greedy++) {
        struct sink k = { 0 };
        struct bz_generate_options o = wild(e, &k, 150, 8);
        o.sampling.temperature = greedy ? 0 : 3;
        o.sampling.top_k = 0;
        o.sampling.top_p = 1;
        o.sampling.bias = &wish;
        o.sampling.n_bias = 1;
        restart(s);
        struct bz_generated g = generate(s, &o);
        for (size_t i = 0; i < g.n; i++)
            for (int b = 0; b < N_SUPPRESS; b++)
                CHECK(bz_session_tokens(s, NULL)[g.first + i] != banned[b]);
        buf_free(&k.text);
    }
    bz_session_close(s);
    bz_engine_close(e);
    remove(path.z);
}

/* ---- arguments, memory ---- */

static void check_arguments(bz_engine *e)
{
    bz_session *s = open_session(e, CONTEXT, 16);
    struct bz_sampling good = bz_sampling_defaults(e), bad[7];
    int32_t id = -5;
    struct bz_err err = { "" };
    CHECK(good.temperature == 1 && good.top_k == 64 && good.top_p == 0.95f && good.min_p == 0);
    CHECK(good.repeat_penalty == 1 && good.n_bias == 0);
    CHECK(bz_session_sample(s, &good, &id, &err) == BZ_ERR_ARGUMENT && err.text[0]);
    CHECK(bz_generate(s, NULL, NULL, &err) == BZ_ERR_ARGUMENT);
    restart(s);
    for (int i = 0; i < 7; i++) bad[i] = good;
    bad[0].temperature = -1;
    bad[1].temperature = NAN;
    bad[2].top_p = -0.1f;
    bad[3].top_p = NAN;
    bad[4].repeat_penalty = -1;
    bad[5].min_p = 1.5f;
    bad[6].min_p = NAN;
    for (int i = 0; i < 7; i++) {
        err.text[0] = 0;
        CHECK(bz_session_sample(s, &bad[i], &id, &err) == BZ_ERR_ARGUMENT && err.text[0]);
    }
    bad[0] = good;
    bad[0].presence_penalty = INFINITY;
    CHECK(bz_session_sample(s, &bad[0], &id, &err) == BZ_ERR_ARGUMENT);
    CHECK(id == -5 && bz_session_sample(s, &good, &id, &err) == BZ_OK && id >= 0);
    /* Zeroed is greedy; NULL is the defaults. */
    struct bz_sampling zero = { 0 };
    const float *z = bz_session_logits(s);
    CHECK(bz_session_sample(s, &zero, &id, &err) == BZ_OK);
    for (uint32_t i = 0; i < bz_engine_info(e).n_vocab; i++) CHECK(z[i] <= z[id]);
    CHECK(bz_session_sample(s, NULL, &id, &err) == BZ_OK);
    struct bz_generate_options o = bz_generate_defaults(e);
    o.n_max = 2; /* no callback, no result */
    CHECK(bz_generate(s, &o, NULL, &err) == BZ_OK);
    bz_session_close(s);
}

/* Any single failed allocation is an error; without one the text is whole. A stop string that is a
 * longer version of the whole text holds all of it back until the end. */
static void check_memory(bz_engine *e, uint32_t n_max)
{
    bz_session *s = open_session(e, CONTEXT, 16);
    struct buf all = { 0 };
    uint64_t seed = 0;
    while (all.n == 0 || strlen(all.data) != all.n) { /* a stop string has no NUL */
        buf_free(&all);
        all = text_of(s, wild(e, NULL, n_max, ++seed), NULL);
    }
    buf_putc(&all, '\x01');
    const char *stop[] = { all.data };
    struct bz_generate_options o = wild(e, NULL, n_max, seed);
    o.stop = stop;
    o.n_stop = 1;
    int64_t live = mem_live();
    bool failed = true;
    for (uint64_t k = 1; failed; k++) {
        struct sink sink = { 0 };
        struct bz_err err = { "" };
        struct bz_generated g;
        buf_put(&sink.text, all.data, all.n); /* room, so that the sink needs no memory itself */
        sink.text.n = 0;
        restart(s);
        o.ctx = &sink;
        uint64_t before = mem_count();
        mem_fail_at(k);
        enum bz_status st = bz_generate(s, &o, &g, &err);
        mem_fail_at(0);
        failed = mem_count() - before >= k;
        bool whole = sink.text.n == all.n - 1 && memcmp(sink.text.data, all.data, all.n - 1) == 0;
        CHECK(st == BZ_OK ? whole : st == BZ_ERR_MEMORY && err.text[0]);
        CHECK(failed == (st == BZ_ERR_MEMORY));
        buf_free(&sink.text);
        CHECK(mem_live() == live);
    }
    buf_free(&all);
    bz_session_close(s);
}

int main(void)
{
    int64_t live = mem_live();
    bz_engine *e[N_GOLDEN];
    for (int m = 0; m < N_GOLDEN; m++) e[m] = open_engine(golden[m], BZ_BACKEND_CPU);
#define FOR_EACH_MODEL for (int m = 0; m < N_GOLDEN; m++)
    TEST("the same seed gives the same text, another seed another") FOR_EACH_MODEL check_seed(e[m]);
    TEST("stopping and going on gives the tokens of one run") FOR_EACH_MODEL check_resume(e[m]);
    TEST("every position draws with another random number")
    FOR_EACH_MODEL check_positions(e[m]);
    TEST("temperature 0 follows the largest logit") FOR_EACH_MODEL check_greedy(e[m]);
    TEST("a full context ends the text") FOR_EACH_MODEL check_context(e[m]);
    TEST("an end token ends the text, is fed, and shows only on request")
    FOR_EACH_MODEL check_end(e[m]);
    TEST("a stop string ends the text wherever token borders fall")
    FOR_EACH_MODEL check_stop_strings(e[m]);
    TEST("the callback can stop, and generation can go on") FOR_EACH_MODEL check_cancel(e[m]);
    TEST("suppressed tokens are never drawn") FOR_EACH_MODEL check_suppress(golden[m]);
    TEST("sampling options that make no sense are errors") FOR_EACH_MODEL check_arguments(e[m]);
    TEST("generating survives any failed allocation")
    {
        FOR_EACH_MODEL
        {
            check_memory(e[m], 1);
            check_memory(e[m], 100);
        }
    }
    FOR_EACH_MODEL bz_engine_close(e[m]);
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
