/* test_snapshot.c - a saved session goes on where it was, to the bit; all else is refused. */
#include "base/sha256.h"
#include "model_fixture.h"

enum { LONG_CONTEXT = 1000, HASH_BYTES = 32, VERSION_AT = 4, FINGERPRINT_AT = 8 };

struct snapshot {
    uint8_t *data;
    size_t n;
};

static struct snapshot save(bz_session *s)
{
    struct bz_err err = { "" };
    void *data = NULL;
    size_t n = 0;
    CHECK_MSG(bz_session_save(s, &data, &n, &err) == BZ_OK, "%s", err.text);
    return (struct snapshot) { data, n };
}

/* Make the checksum right again after an edit. */
static void sign(struct snapshot s)
{
    struct sha256 h;
    sha256_init(&h);
    sha256_feed(&h, s.data, s.n - HASH_BYTES);
    sha256_end(&h, s.data + s.n - HASH_BYTES);
}

static size_t n_tokens(const bz_session *s)
{
    size_t n;
    bz_session_tokens(s, &n);
    return n;
}

/* A snapshot that must be refused: a status, a sentence, and an empty session that still works. */
static void check_refused(bz_session *s, struct snapshot snap, enum bz_status want)
{
    struct bz_err err = { "" };
    /* A copy that ends where it ends, so that a sanitizer sees every step past it. */
    uint8_t *copy = malloc(snap.n ? snap.n : 1);
    if (snap.n) memcpy(copy, snap.data, snap.n);
    enum bz_status st = bz_session_restore(s, copy, snap.n, &err);
    CHECK_MSG(st == want && err.text[0], "status %d, not %d: %s", (int)st, (int)want, err.text);
    CHECK(n_tokens(s) == 0 && bz_session_logits(s) == NULL);
    free(copy);
}

/* ---- going on ---- */

/* Save after n tokens, restore into a session of another size, and go on in both. */
static void check_continue(bz_engine *e, uint32_t n, uint32_t context, uint32_t batch)
{
    enum { PIECE = 50, AFTER = 21 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab;
    int32_t *ids = random_ids(e, n + AFTER, 40);
    bz_session *s = open_session(e, LONG_CONTEXT, PIECE), *other = open_session(e, context, batch);
    feed_pieces(other, ids, 5, 5); /* something to forget */
    if (n) feed_pieces(s, ids, n, PIECE);
    struct snapshot snap = save(s);
    struct bz_err err = { "" };
    CHECK_MSG(!bz_session_restore(other, snap.data, snap.n, &err), "%s", err.text);
    size_t n_held;
    const int32_t *held = bz_session_tokens(other, &n_held);
    CHECK(n_held == n && memcmp(held, ids, n * sizeof *ids) == 0);
    CHECK(bz_session_logits(other) == NULL);
    for (uint32_t at = 0; at < AFTER; at += 7) {
        feed_pieces(s, ids + n + at, 7, 7);
        feed_pieces(other, ids + n + at, 7, 7);
        CHECK(same_floats(bz_session_logits(s), bz_session_logits(other), n_vocab));
    }
    bz_free(snap.data);
    bz_session_close(s);
    bz_session_close(other);
    free(ids);
}

/* Restoring and saving again gives the same bytes. */
static void check_stable(bz_engine *e, uint32_t n)
{
    int32_t *ids = random_ids(e, n, 41);
    bz_session *a = open_session(e, LONG_CONTEXT, 50), *b = open_session(e, LONG_CONTEXT, 50);
    feed_pieces(a, ids, n, 50);
    struct snapshot first = save(a);
    CHECK(bz_session_restore(b, first.data, first.n, NULL) == BZ_OK);
    struct snapshot second = save(b);
    CHECK(first.n == second.n && memcmp(first.data, second.data, first.n) == 0);
    bz_free(first.data);
    bz_free(second.data);
    bz_session_close(a);
    bz_session_close(b);
    free(ids);
}

/* Halves go into an f32 session and back without loss; f32 into halves is rounded once. */
static void check_kinds(bz_engine *e, uint32_t n)
{
    int32_t *ids = random_ids(e, n + 5, 47);
    bz_session *f32 = open_session(e, LONG_CONTEXT, 50);
    bz_session *f16 = open_session_of(e, LONG_CONTEXT, 50, BZ_CACHE_F16);
    feed_pieces(f16, ids, n, 50);
    struct snapshot half = save(f16);
    CHECK(bz_session_restore(f32, half.data, half.n, NULL) == BZ_OK && n_tokens(f32) == n);
    struct snapshot wide = save(f32);
    CHECK(wide.n > half.n + half.n / 2);
    CHECK(bz_session_restore(f16, wide.data, wide.n, NULL) == BZ_OK && n_tokens(f16) == n);
    struct snapshot again = save(f16);
    CHECK(again.n == half.n && memcmp(again.data, half.data, half.n) == 0);
    /* The same cache, so the same next token but for its own keys' rounding. */
    feed_pieces(f32, ids + n, 5, 5);
    feed_pieces(f16, ids + n, 5, 5);
    double off = largest_difference(bz_session_logits(f16), bz_session_logits(f32),
                                    bz_engine_info(e).n_vocab);
    CHECK_MSG(off < 0.05, "%g", off);
    bz_free(half.data);
    bz_free(wide.data);
    bz_free(again.data);
    bz_session_close(f32);
    bz_session_close(f16);
    free(ids);
}

/* What truncate says after a restore is true: rows that the snapshot did not bring are not there,
 * however large the new session's rings are. */
static void check_truncate(bz_engine *e, uint32_t n, uint32_t cut, uint32_t context, uint32_t batch)
{
    enum { PIECE = 30 };
    uint32_t n_vocab = bz_engine_info(e).n_vocab, kept, n_kept = 0, n_lost = 0;
    int32_t *ids = random_ids(e, n + 1, 42);
    bz_session *s = open_session(e, LONG_CONTEXT, PIECE), *fresh = open_session(e, context, PIECE);
    bz_session *other = open_session(e, context, batch);
    feed_pieces(s, ids, n, PIECE);
    CHECK(bz_session_truncate(s, cut, &kept, NULL) == BZ_OK && kept == cut);
    struct snapshot snap = save(s);
    for (uint32_t keep = PIECE; keep < cut; keep += 3 * PIECE) {
        CHECK(bz_session_restore(other, snap.data, snap.n, NULL) == BZ_OK);
        CHECK(bz_session_truncate(other, keep, &kept, NULL) == BZ_OK);
        CHECK(kept == 0 || kept == keep);
        n_lost += kept == 0;
        n_kept += kept == keep;
        if (kept == 0) continue;
        bz_session_truncate(fresh, 0, NULL, NULL);
        feed_pieces(fresh, ids, keep, PIECE);
        feed_pieces(fresh, ids + n, 1, 1);
        feed_pieces(other, ids + n, 1, 1);
        CHECK(same_floats(bz_session_logits(other), bz_session_logits(fresh), n_vocab));
    }
    CHECK_MSG(n_lost > 0 && n_kept > 0, "%u lost, %u kept", n_lost, n_kept);
    bz_free(snap.data);
    bz_session_close(s);
    bz_session_close(fresh);
    bz_session_close(other);
    free(ids);
}

/* ---- what is refused ---- */

static void check_damage(bz_engine *e)
{
    int32_t *ids = random_ids(e, 3, 43);
    bz_session *s = open_session(e, 16, 4), *other = open_session(e, 16, 4);
    feed_pieces(s, ids, 3, 3);
    struct snapshot snap = save(s);
    for (size_t i = 0; i < snap.n; i++) {
        snap.data[i] ^= (uint8_t)(1 << (i % 8));
        bool in_version = i >= VERSION_AT && i < FINGERPRINT_AT;
        check_refused(other, snap, in_version ? BZ_ERR_UNSUPPORTED : BZ_ERR_FORMAT);
        snap.data[i] ^= (uint8_t)(1 << (i % 8));
    }
    for (size_t n = 0; n < snap.n; n += 1 + n / 200)
        check_refused(other, (struct snapshot) { snap.data, n }, BZ_ERR_FORMAT);
    CHECK(bz_session_restore(other, snap.data, snap.n, NULL) == BZ_OK && n_tokens(other) == 3);
    bz_free(snap.data);
    bz_session_close(s);
    bz_session_close(other);
    free(ids);
}

/* With a right checksum: every 32-bit number of the file's own fields changed, and every length. */
static void check_lies(bz_engine *e)
{
    enum { HEAD = 92, N = 3 };
    static const uint32_t lies[] = { 0, 1, 2, 4, 15, 16, 17, 1000, 0x7fffffff, 0xffffffff };
    int32_t *ids = random_ids(e, N, 44);
    bz_session *s = open_session(e, 16, 4), *other = open_session(e, 16, 4);
    feed_pieces(s, ids, N, N);
    struct snapshot snap = save(s);
    for (size_t at = FINGERPRINT_AT; at < HEAD + 4 * N + 8; at += 4)
        for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
            uint32_t was;
            memcpy(&was, snap.data + at, 4);
            if (was == lies[i]) continue;
            memcpy(snap.data + at, &lies[i], 4);
            sign(snap);
            struct bz_err err = { "" };
            enum bz_status st = bz_session_restore(other, snap.data, snap.n, &err);
            bool is_token = at >= HEAD && at < HEAD + 4 * N;
            bool valid = is_token && lies[i] < bz_engine_info(e).n_vocab;
            CHECK_MSG(valid ? st == BZ_OK : st && err.text[0] && n_tokens(other) == 0,
                      "a %u at byte %zu is believed", lies[i], at);
            memcpy(snap.data + at, &was, 4);
        }
    sign(snap);
    struct snapshot longer = { malloc(snap.n + 64), 0 };
    memcpy(longer.data, snap.data, snap.n);
    memset(longer.data + snap.n, 0, 64);
    for (size_t n = 0; n <= snap.n + 64; n += 1 + n / 100) {
        longer.n = n;
        if (n == snap.n || n < HASH_BYTES) continue;
        memcpy(longer.data, snap.data, n < snap.n ? n : snap.n);
        sign(longer);
        check_refused(other, longer, BZ_ERR_FORMAT);
    }
    free(longer.data);
    CHECK(bz_session_restore(other, snap.data, snap.n, NULL) == BZ_OK);
    bz_free(snap.data);
    bz_session_close(s);
    bz_session_close(other);
    free(ids);
}

static void check_others(bz_engine *const *engines)
{
    for (int from = 0; from < N_GOLDEN; from++) {
        int32_t *ids = random_ids(engines[from], 20, 45);
        bz_session *s = open_session(engines[from], 32, 32);
        feed_pieces(s, ids, 20, 20);
        struct snapshot snap = save(s);
        for (int to = 0; to < N_GOLDEN; to++) {
            bz_session *other = open_session(engines[to], 32, 8);
            if (to != from) check_refused(other, snap, BZ_ERR_FORMAT);
            bz_session_close(other);
        }
        bz_session *small = open_session(engines[from], 19, 8);
        check_refused(small, snap, BZ_ERR_LIMIT);
        feed_pieces(small, ids, 19, 5);
        bz_session_close(small);
        bz_session_close(s);
        bz_free(snap.data);
        free(ids);
    }
}

/* The same weights, but numbers in the metadata that change what is computed with them. */
static void check_metadata(void)
{
    static const struct {
        const char *key;
        double number;
        bool same;
    } edits[] = {
        { "gemma4.rope.freq_base", 2000000, false },
        { "gemma4.rope.freq_base_swa", 20000, false },
        { "gemma4.attention.sliding_window", 8, false },
        { "gemma4.final_logit_softcapping", 50, false },
        { "gemma4.attention.layer_norm_rms_epsilon", 1e-5, false },
        { "gemma4.context_length", 100, true },
    };
    bz_engine *e = open_engine(golden[0], BZ_BACKEND_CPU);
    int32_t *ids = random_ids(e, 20, 48);
    bz_session *s = open_session(e, 32, 32);
    feed_pieces(s, ids, 20, 20);
    struct snapshot snap = save(s);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        struct tmp_path path = tmp_path("snapshot_meta.gguf");
        copy_model(golden[0], path.z,
                   &(struct model_edit) { .key = edits[i].key, .number = edits[i].number });
        bz_engine *other = open_engine(path.z, BZ_BACKEND_CPU);
        bz_session *t = open_session(other, 32, 32);
        struct bz_err err = { "" };
        enum bz_status st = bz_session_restore(t, snap.data, snap.n, &err);
        CHECK_MSG((st == BZ_OK) == edits[i].same, "%s: %s", edits[i].key, err.text);
        CHECK(st == BZ_OK || strstr(err.text, "belongs to another model"));
        bz_session_close(t);
        bz_engine_close(other);
        remove(path.z);
    }
    bz_free(snap.data);
    bz_session_close(s);
    bz_engine_close(e);
    free(ids);
}

static int add_adapter(bz_engine *e, uint64_t seed, float scale)
{
    struct tmp_path path = tmp_path("snapshot_lora.gguf");
    struct lora_spec l = { "blk.0.attn_output.weight", 64, 96, 1, 3, seed, 0.5f };
    struct bz_err err = { "" };
    int id = -1;
    write_adapter(path.z, 6, &l, 1);
    CHECK_MSG(bz_adapter_add(e, path.z, scale, &id, &err) == BZ_OK, "%s", err.text);
    remove(path.z);
    return id;
}

/* Does a session of this engine take the snapshot? */
static bool takes(bz_engine *e, struct snapshot snap)
{
    bz_session *s = open_session(e, 32, 32);
    struct bz_err err = { "" };
    enum bz_status st = bz_session_restore(s, snap.data, snap.n, &err);
    CHECK_MSG(st == BZ_OK || strstr(err.text, "made with other adapters"), "%s", err.text);
    bz_session_close(s);
    return st == BZ_OK;
}

static void check_adapters(void)
{
    bz_engine *e = open_engine(golden[0], BZ_BACKEND_CPU);
    bz_engine *twin = open_engine(golden[0], BZ_BACKEND_REFERENCE);
    int32_t *ids = random_ids(e, 20, 49);
    struct bz_err err = { "" };
    bz_session *s = open_session(e, 32, 32), *plain = open_session(e, 32, 32);
    feed_pieces(plain, ids, 10, 10);
    struct snapshot without = save(plain);
    int id = add_adapter(e, 7, 1), other = add_adapter(twin, 8, 1);
    feed_pieces(s, ids, 10, 10);
    struct snapshot with = save(s);
    CHECK(takes(e, with) && !takes(e, without));
    CHECK(!takes(twin, with) && !takes(twin, without)); /* it wears another one */
    CHECK(bz_adapter_remove(twin, other, NULL) == BZ_OK && takes(twin, without));
    int same = add_adapter(twin, 7, 0); /* of no effect */
    CHECK(takes(twin, without) && !takes(twin, with));
    CHECK(bz_adapter_scale(twin, same, 0.5f, NULL) == BZ_OK && !takes(twin, with));
    CHECK(bz_adapter_scale(twin, same, 1, NULL) == BZ_OK && takes(twin, with));
    /* What a session holds belongs to the adapters that computed it, not to those of today. */
    CHECK(bz_adapter_remove(e, id, NULL) == BZ_OK);
    struct snapshot late = save(s);
    CHECK(takes(twin, late) && !takes(e, late));
    feed_pieces(s, ids + 10, 5, 5);
    void *data = NULL;
    size_t n = 0;
    CHECK(bz_session_save(s, &data, &n, &err) == BZ_ERR_ARGUMENT && !data);
    CHECK_MSG(strstr(err.text, "several sets of adapters"), "%s", err.text);
    CHECK(bz_session_set(s, ids, 10, &err) == BZ_OK);
    struct snapshot again = save(s);
    CHECK(takes(e, again));
    bz_free(without.data);
    bz_free(with.data);
    bz_free(late.data);
    bz_free(again.data);
    bz_session_close(s);
    bz_session_close(plain);
    bz_engine_close(e);
    bz_engine_close(twin);
    free(ids);
}

static void check_memory(bz_engine *e)
{
    int32_t *ids = random_ids(e, 9, 46);
    bz_session *s = open_session(e, 16, 16);
    feed_pieces(s, ids, 9, 9);
    int64_t live = mem_live();
    bool done = false;
    for (uint64_t k = 1; !done && k < 1000; k++) {
        struct bz_err err = { "" };
        void *data = NULL;
        size_t n;
        mem_fail_at(k);
        enum bz_status st = bz_session_save(s, &data, &n, &err);
        mem_fail_at(0);
        done = st == BZ_OK;
        CHECK(done || (st == BZ_ERR_MEMORY && err.text[0] && !data));
        bz_free(data);
    }
    CHECK(done && mem_live() == live);
    struct snapshot snap = save(s);
    done = false;
    for (uint64_t k = 1; !done && k < 1000; k++) {
        struct bz_err err = { "" };
        mem_fail_at(k);
        enum bz_status st = bz_session_restore(s, snap.data, snap.n, &err);
        mem_fail_at(0);
        done = st == BZ_OK;
        CHECK(done || (st == BZ_ERR_MEMORY && err.text[0] && n_tokens(s) == 0));
    }
    CHECK(done && n_tokens(s) == 9);
    bz_free(snap.data);
    CHECK(mem_live() == live);
    bz_session_close(s);
    free(ids);
}

int main(void)
{
    int64_t live = mem_live();
    TEST("a snapshot fits no model whose metadata computes something else") check_metadata();
    TEST("a snapshot belongs to the adapters, and their strengths, that computed it")
    check_adapters();
    bz_engine *engines[N_GOLDEN], *deep[N_GOLDEN];
    struct model_edit longer = { .n_context = LONG_CONTEXT };
    for (int i = 0; i < N_GOLDEN; i++) {
        struct tmp_path path = tmp_path("snapshot.gguf");
        copy_model(golden[i], path.z, &longer);
        engines[i] = open_engine(golden[i], BZ_BACKEND_CPU);
        deep[i] = open_engine(path.z, BZ_BACKEND_CPU);
        remove(path.z); /* it stays mapped */
    }
#define FOR_EACH_MODEL for (int m = 0; m < N_GOLDEN; m++)
    TEST("a restored session goes on like the original")
    {
        FOR_EACH_MODEL
        {
            check_continue(deep[m], 0, LONG_CONTEXT, 50);
            check_continue(deep[m], 1, 64, 8);
            check_continue(deep[m], 40, 64, 64);
            check_continue(deep[m], 450, LONG_CONTEXT, 50); /* the rings have turned */
            check_continue(deep[m], 450, 480, 7);           /* into smaller rings */
            check_continue(deep[m], 450, 800, 700);         /* into larger ones */
        }
    }
    TEST("restore and save again gives the same bytes")
    {
        FOR_EACH_MODEL
        {
            check_stable(deep[m], 20);
            check_stable(deep[m], 450);
        }
    }
    TEST("a snapshot of halves fits an f32 session and the reverse")
    {
        FOR_EACH_MODEL
        {
            check_kinds(deep[m], 20);
            check_kinds(deep[m], 450);
        }
    }
    TEST("truncate after a restore knows what the snapshot did not bring")
    {
        FOR_EACH_MODEL
        {
            check_truncate(deep[m], 500, 500, LONG_CONTEXT, 30);  /* rings of the same size */
            check_truncate(deep[m], 500, 400, LONG_CONTEXT, 30);  /* saved after stepping back */
            check_truncate(deep[m], 500, 500, LONG_CONTEXT, 900); /* rings as long as the context */
            check_truncate(deep[m], 500, 500, 510, 5);            /* smaller rings */
        }
    }
    TEST("a snapshot damaged at any byte, or cut, is refused") check_damage(engines[2]);
    TEST("a snapshot whose numbers lie is refused, checksum or not")
    {
        check_lies(engines[2]);
        check_lies(engines[3]);
    }
    TEST("a snapshot of another model, or too long for the context, is refused")
    check_others(engines);
    TEST("save and restore survive any failed allocation") FOR_EACH_MODEL check_memory(engines[m]);
    FOR_EACH_MODEL
    {
        bz_engine_close(engines[m]);
        bz_engine_close(deep[m]);
    }
    TEST("nothing is left allocated") CHECK(mem_live() == live);
    return check_done();
}
