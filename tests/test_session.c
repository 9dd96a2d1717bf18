/* test_session.c - feeding tokens: the same text gives the same logits, however it arrives.
 *
 * The reference backend computes every row by itself in one order, so "the same" is to the bit. The
 * fast backend sums in another order when it has several rows. There logits (at most 30, after the
 * cap) may differ by f32 rounding that went through 6 layers.
 */
#include "model_fixture.h"

enum { LONG_CONTEXT = 1000 }; /* several turns of a ring: window + batch + 256 of slack */

#define CLOSE                                                                                      \
    2e-4 /* 5 times the largest difference seen; a wrong mask or position gives 0.1 and more */

/* All logits of a run, a row per position. */
struct log {
    float *rows;
    uint32_t n_vocab, first, n, stop_at; /* stop_at: cancel after so many; 0 never */
};

static bool on_logits(void *ctx, uint32_t position, const float *z)
{
    struct log *l = ctx;
    if (l->n == 0) l->first = position;
    CHECK(position == l->first + l->n);
    l->rows = realloc(l->rows, (size_t)(l->n + 1) * l->n_vocab * sizeof *l->rows);
    memcpy(l->rows + (size_t)l->n * l->n_vocab, z, l->n_vocab * sizeof *z);
    l->n++;
    return l->stop_at == 0 || l->n < l->stop_at;
}

/* Feed ids in pieces and log the logits of every position. */
static struct log feed_logged(bz_session *s, uint32_t n_vocab, const int32_t *ids, size_t n,
                              size_t piece)
{
    struct log l = { .n_vocab = n_vocab };
    struct bz_err err = { "" };
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < piece ? n - at : piece;
        CHECK_MSG(!bz_session_feed(s, ids + at, k, k, on_logits, &l, &err), "%s", err.text);
    }
    CHECK(l.n == n);
    return l;
}

static void check_close(const float *a, const float *b, size_t n, bool exact, const char *what)
{
    double d = largest_difference(a, b, n);
    CHECK_MSG(exact ? same_floats(a, b, n) : d <= CLOSE, "%s: differ by %g", what, d);
}

/* ---- pieces ---- */

/* n at once, one by one, in odd pieces, through batches of odd sizes. */
static void check_pieces(bz_engine *e, bool exact)
{
    enum { N = 47 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    int32_t *ids = random_ids(e, N, 5);
    bz_session *s = open_session(e, N, N);
    struct log want = feed_logged(s, n_vocab, ids, N, N);
    bz_session_close(s);
    static const struct {
        uint32_t batch, piece;
    } ways[] = { { N, 1 }, { 1, N }, { 3, N }, { 7, 23 }, { 32, N }, { N, 2 } };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        s = open_session(e, N + 3, ways[i].batch);
        struct log got = feed_logged(s, n_vocab, ids, N, ways[i].piece);
        check_close(got.rows, want.rows, (size_t)N * n_vocab, exact, "pieces");
        bz_session_close(s);
        free(got.rows);
    }
    free(want.rows);
    free(ids);
}

/* Rows whose logits nobody wants leave early; those that stay, and the cache, must not notice. */
static void check_n_logits(bz_engine *e, bool exact)
{
    enum { N = 40, AFTER = 3 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    int32_t *ids = random_ids(e, N + AFTER, 6);
    bz_session *s = open_session(e, 64, 17);
    struct log want = feed_logged(s, n_vocab, ids, N + AFTER, N + AFTER);
    bz_session_close(s);
    static const size_t wishes[] = { 0, 1, 9, 18, 39, 1000 };
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        size_t n = wishes[i] < N ? wishes[i] : N;
        struct log got = { .n_vocab = n_vocab };
        s = open_session(e, 64, 17);
        CHECK(bz_session_feed(s, ids, N, wishes[i], on_logits, &got, NULL) == BZ_OK);
        CHECK(got.n == n && (n == 0 || got.first == N - n));
        CHECK((bz_session_logits(s) != NULL) == (n > 0));
        if (n)
            check_close(got.rows, want.rows + (N - n) * n_vocab, n * n_vocab, exact, "few logits");
        if (n) CHECK(same_floats(bz_session_logits(s), got.rows + (n - 1) * n_vocab, n_vocab));
        free(got.rows);
        got = feed_logged(s, n_vocab, ids + N, AFTER, 1);
        check_close(got.rows, want.rows + (size_t)N * n_vocab, (size_t)AFTER * n_vocab, exact,
                    "what comes after");
        free(got.rows);
        bz_session_close(s);
    }
    free(want.rows);
    free(ids);
}

/* ---- going back ---- */

/* Truncate and go on another way, at every length. */
static void check_truncate(bz_engine *e, bool exact)
{
    enum { N = 30 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab, kept;
    int32_t *ids = random_ids(e, N, 7), *other = random_ids(e, N, 8);
    bz_session *s = open_session(e, 64, 8), *fresh = open_session(e, 64, 8);
    for (uint32_t keep = 0; keep < N; keep += 1 + keep / 4) {
        memcpy(other, ids, keep * sizeof *ids);
        CHECK(bz_session_truncate(s, 0, &kept, NULL) == BZ_OK && kept == 0);
        CHECK(bz_session_truncate(fresh, 0, NULL, NULL) == BZ_OK);
        feed_pieces(s, ids, N, 5);
        CHECK(bz_session_truncate(s, keep, &kept, NULL) == BZ_OK && kept == keep);
        CHECK(bz_session_logits(s) == NULL);
        size_t n;
        CHECK(memcmp(bz_session_tokens(s, &n), ids, keep * sizeof *ids) == 0 && n == keep);
        feed_pieces(s, other + keep, N - keep, N);
        feed_pieces(fresh, other, N, N);
        check_close(bz_session_logits(s), bz_session_logits(fresh), n_vocab, exact, "truncated");
        CHECK(bz_session_truncate(s, N + 1, &kept, NULL) == BZ_ERR_ARGUMENT);
        CHECK(bz_session_truncate(s, N, &kept, NULL) == BZ_OK && kept == N);
        CHECK(bz_session_logits(s) != NULL); /* nothing was forgotten */
    }
    bz_session_close(s);
    bz_session_close(fresh);
    free(ids);
    free(other);
}

/* The same pieces of 100 as a session that never went back give the same bits, on any backend. */
static void check_far_back(bz_engine *e)
{
    enum { N = 900, PIECE = 100 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab, kept;
    int32_t *ids = random_ids(e, N, 9);
    bz_session *s = open_session(e, LONG_CONTEXT, PIECE);
    feed_pieces(s, ids, N, PIECE);
    float *want = keep_logits(s, n_vocab);
    /* Inside the slack: a ring of window + 100 + 256 rows still holds the window before 700. */
    CHECK(bz_session_truncate(s, 700, &kept, NULL) == BZ_OK && kept == 700);
    feed_pieces(s, ids + 700, N - 700, PIECE);
    CHECK(same_floats(bz_session_logits(s), want, n_vocab));
    /* Outside: everything must be fed again. */
    CHECK(bz_session_truncate(s, 500, &kept, NULL) == BZ_OK && kept == 0);
    size_t n;
    bz_session_tokens(s, &n);
    CHECK(n == 0 && bz_session_logits(s) == NULL);
    feed_pieces(s, ids, N, PIECE);
    CHECK(same_floats(bz_session_logits(s), want, n_vocab));
    bz_session_close(s);
    free(want);
    free(ids);
}

/* For every length: what truncate says is kept is whole. It is compared with a session whose ring
 * is as long as its context. */
static void check_ring_border(bz_engine *e)
{
    enum { N = 320, PIECE = 10, AFTER = 10 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab, n_lost = 0, n_kept = 0;
    int32_t *ids = random_ids(e, N, 10);
    bz_session *whole = open_session(e, 330, 330), *ring = open_session(e, 330, PIECE);
    for (uint32_t keep = 30; keep < 90; keep += PIECE) {
        uint32_t kept;
        bz_session_truncate(ring, 0, NULL, NULL);
        feed_pieces(ring, ids, N, PIECE);
        CHECK(bz_session_truncate(ring, keep, &kept, NULL) == BZ_OK);
        n_lost += kept == 0;
        n_kept += kept == keep;
        if (kept == 0) continue;
        bz_session_truncate(whole, 0, NULL, NULL);
        feed_pieces(whole, ids, keep, PIECE);
        feed_pieces(ring, ids + N - AFTER, AFTER, AFTER);
        feed_pieces(whole, ids + N - AFTER, AFTER, AFTER);
        CHECK(same_floats(bz_session_logits(ring), bz_session_logits(whole), n_vocab));
    }
    CHECK(n_lost > 0 && n_kept > 0); /* the border is between */
    bz_session_close(whole);
    bz_session_close(ring);
    free(ids);
}

/* A feed that fails inside the network has overwritten rows of the rings. */
static void check_failed_feed(const char *path)
{
    enum { N = 400, PIECE = 200, CTX = N + PIECE };
    bz_engine *e = open_engine(path, BZ_BACKEND_CPU);
    uint32_t n_vocab = bz_engine_info(e).n_vocab, kept;
    int32_t *ids = random_ids(e, N + PIECE, 11);
    bz_session *s = open_session(e, CTX, PIECE), *fresh = open_session(e, CTX, CTX);
    struct bz_err err = { "" };
    feed_pieces(s, ids, N, PIECE);
    /* Attention over half as many positions again needs more scratch than the room that growth by a
     * quarter left. */
    mem_fail_at(1);
    CHECK(bz_session_feed(s, ids + N, PIECE, 1, NULL, NULL, &err) == BZ_ERR_MEMORY && err.text[0]);
    mem_fail_at(0);
    size_t n;
    CHECK(memcmp(bz_session_tokens(s, &n), ids, N * sizeof *ids) == 0 && n == N);
    for (uint32_t keep = 200; keep > 60; keep -= 13) {
        CHECK(bz_session_truncate(s, keep, &kept, NULL) == BZ_OK);
        if (kept == 0) break;
        bz_session_truncate(fresh, 0, NULL, NULL);
        feed_pieces(fresh, ids, keep, PIECE);
        feed_pieces(s, ids, 1, 1);
        feed_pieces(fresh, ids, 1, 1);
        check_close(bz_session_logits(s), bz_session_logits(fresh), n_vocab, false,
                    "after failure");
    }
    bz_session_close(s);
    bz_session_close(fresh);
    bz_engine_close(e);
    free(ids);
}

/* ---- limits and wishes ---- */

static void check_limits(bz_engine *e)
{
    enum { N = 20 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    int32_t *ids = random_ids(e, N + 1, 12), bad[] = { 1, -1, 2 };
    bz_session *s = open_session(e, N, 6);
    struct bz_err err = { "" };
    feed_pieces(s, ids, 15, 15);
    float *before = keep_logits(s, n_vocab);
    CHECK(bz_session_feed(s, ids, 6, 1, NULL, NULL, &err) == BZ_ERR_LIMIT && err.text[0]);
    CHECK(bz_session_feed(s, bad, 3, 1, NULL, NULL, &err) == BZ_ERR_ARGUMENT);
    bad[1] = (int32_t)n_vocab;
    CHECK(bz_session_feed(s, bad, 3, 1, NULL, NULL, &err) == BZ_ERR_ARGUMENT);
    size_t n;
    bz_session_tokens(s, &n);
    CHECK(n == 15 && same_floats(bz_session_logits(s), before, n_vocab));
    feed_pieces(s, ids + 15, 5, 5); /* exactly full */
    CHECK(bz_session_feed(s, ids, 1, 1, NULL, NULL, &err) == BZ_ERR_LIMIT);
    CHECK(bz_session_feed(s, ids, 0, 1, NULL, NULL, &err) == BZ_OK);
    CHECK(bz_session_logits(s) != NULL);

    bz_session *fresh = open_session(e, N, 6), *none = NULL;
    feed_pieces(fresh, ids, 15, 15);
    feed_pieces(fresh, ids + 15, 5, 5);
    CHECK(same_floats(bz_session_logits(s), bz_session_logits(fresh), n_vocab));
    struct bz_session_options o = { .n_context = bz_engine_info(e).n_context + 1 };
    CHECK(bz_session_open(&none, e, &o, &err) == BZ_ERR_LIMIT && !none);
    free(before);
    free(ids);
    bz_session_close(s);
    bz_session_close(fresh);
}

/* A callback that has seen enough: the tokens are not there afterwards, and feeding goes on. */
static void check_cancel(bz_engine *e, bool exact)
{
    enum { N = 30 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    int32_t *ids = random_ids(e, N, 13);
    bz_session *s = open_session(e, 64, 4), *fresh = open_session(e, 64, 4);
    feed_pieces(fresh, ids, N, N);
    for (uint32_t stop_at = 1; stop_at <= 20; stop_at += 3) {
        struct log l = { .n_vocab = n_vocab, .stop_at = stop_at };
        bz_session_truncate(s, 0, NULL, NULL);
        feed_pieces(s, ids, 10, 10);
        CHECK(bz_session_feed(s, ids + 10, 20, 20, on_logits, &l, NULL) == BZ_ERR_CANCELLED);
        size_t n;
        bz_session_tokens(s, &n);
        CHECK(n == 10 && l.n == stop_at);
        free(l.rows);
        feed_pieces(s, ids + 10, N - 10, N);
        check_close(bz_session_logits(s), bz_session_logits(fresh), n_vocab, exact, "cancelled");
    }
    bz_session_close(s);
    bz_session_close(fresh);
    free(ids);
}

/* Any list of tokens after any other gives what a fresh session gives. */
static void check_set(bz_engine *e, bool exact)
{
    enum { N = 40, ROUNDS = 12 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    int32_t *ids = random_ids(e, N, 14);
    struct rng rng = { 4 };
    bz_session *s = open_session(e, 64, 16);
    CHECK(bz_session_set(s, ids, 0, NULL) == BZ_ERR_ARGUMENT);
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = 1 + rng_below(&rng, N), n_held;
        if (round % 3) ids[rng_below(&rng, N)] = (int32_t)rng_below(&rng, n_vocab);
        CHECK(bz_session_set(s, ids, n, NULL) == BZ_OK);
        const int32_t *held = bz_session_tokens(s, &n_held);
        CHECK(n_held == n && memcmp(held, ids, n * sizeof *ids) == 0);
        bz_session *fresh = open_session(e, 64, 16);
        feed_pieces(fresh, ids, n, n);
        check_close(bz_session_logits(s), bz_session_logits(fresh), n_vocab, exact, "set");
        bz_session_close(fresh);
        const float *same = bz_session_logits(s);
        CHECK(bz_session_set(s, ids, n, NULL) == BZ_OK && bz_session_logits(s) == same);
    }
    bz_session_close(s);
    free(ids);
}

/* Three conversations at once, token by token, do not hear each other. */
static void check_several(bz_engine *e)
{
    enum { N = 25, SESSIONS = 3 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    bz_session *s[SESSIONS], *alone = open_session(e, N, 4);
    int32_t *ids[SESSIONS];
    for (uint32_t k = 0; k < SESSIONS; k++) {
        s[k] = open_session(e, N + k, 4);
        ids[k] = random_ids(e, N, 20 + k);
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < SESSIONS; k++) feed_pieces(s[k], ids[k] + i, 1, 1);
    for (int k = 0; k < SESSIONS; k++) {
        bz_session_truncate(alone, 0, NULL, NULL);
        feed_pieces(alone, ids[k], N, 1);
        CHECK(same_floats(bz_session_logits(s[k]), bz_session_logits(alone), n_vocab));
        bz_session_close(s[k]);
        free(ids[k]);
    }
    bz_session_close(alone);
}

/* Two backends, one text. */
static void check_backends(bz_engine *reference, bz_engine *fast)
{
    enum { N = 50 };
    uint32_t n_vocab = bz_engine_info(fast).n_vocab;
    int32_t *ids = random_ids(fast, N, 30);
    bz_session *a = open_session(reference, N, 16), *b = open_session(fast, N, 16);
    struct log want = feed_logged(a, n_vocab, ids, N, 16),
               got = feed_logged(b, n_vocab, ids, N, 16);
    check_close(got.rows, want.rows, (size_t)N * n_vocab, false, "backends");
    double size = 0;
    for (size_t i = 0; i < (size_t)N * n_vocab; i++) size = fmax(size, fabs((double)want.rows[i]));
    CHECK_MSG(size > 1, "logits of at most %g prove nothing", size);
    free(want.rows);
    free(got.rows);
    bz_session_close(a);
    bz_session_close(b);
    free(ids);
}

/* Threads share the work and change no bit of it. */
static void check_threads(const char *path)
{
    enum { N = 40 };
    float *want = NULL;
    for (unsigned n_threads = 1; n_threads <= 3; n_threads++) {
        bz_engine *e = open_engine_with(path, BZ_BACKEND_CPU, n_threads);
        uint32_t n_vocab = bz_engine_info(e).n_vocab;
        int32_t *ids = random_ids(e, N, 31);
        bz_session *s = open_session(e, N, 16);
        struct log got = feed_logged(s, n_vocab, ids, N, 13);
        if (want) CHECK(same_floats(got.rows, want, (size_t)N * n_vocab));
        free(want);
        want = got.rows;
        free(ids);
        bz_session_close(s);
        bz_engine_close(e);
    }
    free(want);
}

/* A cache of halves is near the f32 one but not equal, the same on both backends, whole or in
 * pieces, and half as large. */
static void check_halves(bz_engine *reference, bz_engine *fast)
{
    enum { N = 60 };
    uint32_t n_vocab = bz_engine_info(fast).n_vocab;
    int32_t *ids = random_ids(fast, N, 77);
    bz_session *f32 = open_session(fast, N, 16), *f16 = open_session_of(fast, N, 16, BZ_CACHE_F16);
    bz_session *slow = open_session_of(reference, N, 16, BZ_CACHE_F16);
    feed_pieces(f32, ids, N, 16);
    feed_pieces(f16, ids, N, 16);
    feed_pieces(slow, ids, N, 7);
    double cost = largest_difference(bz_session_logits(f16), bz_session_logits(f32), n_vocab);
    CHECK_MSG(cost > 1e-7 && cost < 0.05, "%g from f32", cost); /* logits of some units */
    /* A key beside the border of two halves may round the other way, by 2^-11 of it. A few keys do,
     * which depends on the compiler; all of them are what halves cost. */
    double off = largest_difference(bz_session_logits(f16), bz_session_logits(slow), n_vocab);
    CHECK_MSG(off < cost / 2, "%g from the reference, where halves cost %g", off, cost);
    struct bz_session_options whole = { .n_context = N, .n_batch = 1 }, half = whole, none = whole;
    half.cache = BZ_CACHE_F16;
    none.n_context = 1;
    CHECK(bz_session_bytes(fast, &half) < bz_session_bytes(fast, &whole));
    CHECK(bz_session_bytes(fast, &half) > bz_session_bytes(fast, &none));
    bz_session_close(f32);
    bz_session_close(f16);
    bz_session_close(slow);
    free(ids);
}

/* A batch larger than the context is the context; zeroed options are the defaults. */
static void check_options(bz_engine *e)
{
    struct bz_session_options o = { .n_context = 16 };
    CHECK(bz_session_bytes(e, &o) < bz_session_bytes(e, NULL));
    bz_session *s = NULL;
    CHECK(bz_session_open(&s, e, NULL, NULL) == BZ_OK);
    bz_session_close(s);
    bz_session_close(NULL);
    s = open_session(e, 3, 1000);
    CHECK(bz_session_feed_text(s, "a", NULL) == BZ_OK);
    size_t n;
    bz_session_tokens(s, &n);
    CHECK(n == 2); /* <bos> and the letter */
    CHECK(bz_session_feed_text(s, "a", NULL) == BZ_OK);
    bz_session_tokens(s, &n);
    CHECK(n == 3); /* <bos> only at the very start */
    bz_session_close(s);
}

int main(void)
{
    int64_t live = mem_live();
    bz_engine *reference[N_GOLDEN], *fast[N_GOLDEN], *deep[N_GOLDEN];
    struct tmp_path long_path[N_GOLDEN];
    struct model_edit longer = { .n_context = LONG_CONTEXT };
    for (int i = 0; i < N_GOLDEN; i++) {
        char name[32];
        snprintf(name, sizeof name, "long_%d.gguf", i);
        long_path[i] = tmp_path(name);
        copy_model(golden[i], long_path[i].z, &longer);
        reference[i] = open_engine(golden[i], BZ_BACKEND_REFERENCE);
        fast[i] = open_engine(golden[i], BZ_BACKEND_CPU);
        deep[i] = open_engine(long_path[i].z, BZ_BACKEND_CPU);
    }
#define FOR_EACH_MODEL for (int m = 0; m < N_GOLDEN; m++)
#define ON_BOTH(check)                                                                             \
    FOR_EACH_MODEL                                                                                 \
    {                                                                                              \
        check(reference[m], true);                                                                 \
        check(fast[m], false);                                                                     \
    }
    TEST("reading a text at once, token by token or in odd batches gives the same logits")
    ON_BOTH(check_pieces);
    TEST("how many logits are asked for changes no logits") ON_BOTH(check_n_logits);
    TEST("truncate and feed again is like a fresh session") ON_BOTH(check_truncate);
    TEST("going back within the slack is exact; beyond it everything is fed again")
    FOR_EACH_MODEL check_far_back(deep[m]);
    TEST("what truncate says is kept is whole") FOR_EACH_MODEL check_ring_border(deep[m]);
    TEST("a feed that failed half-way leaves a session that knows what it still holds")
    FOR_EACH_MODEL check_failed_feed(long_path[m].z);
    TEST("a full context and bad tokens are errors, and the session goes on")
    FOR_EACH_MODEL check_limits(fast[m]);
    TEST("a feed that was cancelled leaves the session as it was") ON_BOTH(check_cancel);
    TEST("set keeps the common beginning and nothing else") ON_BOTH(check_set);
    TEST("sessions of one engine are independent") FOR_EACH_MODEL check_several(fast[m]);
    TEST("the fast backend's logits are the reference's")
    FOR_EACH_MODEL check_backends(reference[m], fast[m]);
    TEST("a cache of halves is half as large and nearly as good")
    FOR_EACH_MODEL check_halves(reference[m], fast[m]);
    TEST("the number of threads changes no bit") FOR_EACH_MODEL check_threads(golden[m]);
    TEST("options have defaults and limits") FOR_EACH_MODEL check_options(fast[m]);
    FOR_EACH_MODEL
    {
        bz_engine_close(reference[m]);
        bz_engine_close(fast[m]);
        bz_engine_close(deep[m]);
        remove(long_path[m].z);
    }
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
