/* fuzz_snapshot.c - any bytes restore a session that works, or leave an empty one that works.
 *
 * The checksum would stop nearly every input, and the model's fingerprint most of the rest. So the
 * bytes are tried as they are, with the checksum corrected, and with the beginning of a true
 * snapshot as well. At last they are laid over a true snapshot, which has whatever form there is
 * now. Run from the repository root. */
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "bezel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    HASH_BYTES = 32,
    TRUE_BYTES = 72, /* magic, version and fingerprint */
    WIDTH_AT = 80,   /* 4: f32, as this session's cache; 2 is converted */
    WORN_AT = 84,    /* which adapters: none */
    HEAD_BYTES = 92,
    WINDOW = 20 /* of the model's sliding layers */
};

static bz_engine *engine;
static bz_session *session;
static uint8_t head[HEAD_BYTES];
static uint8_t *whole; /* a snapshot of three tokens */
static size_t n_whole;

static void start(void)
{
    const struct bz_engine_options o = { .n_threads = 1 };
    const struct bz_session_options so = { .n_context = 24, .n_batch = 4 };
    void *snapshot;
    size_t n;
    if (bz_engine_open(&engine, "tests/golden/model_kv.gguf", &o, NULL)) abort();
    if (bz_session_open(&session, engine, &so, NULL)) abort();
    if (bz_session_save(session, &snapshot, &n, NULL) || n < HEAD_BYTES) abort();
    memcpy(head, snapshot, HEAD_BYTES);
    bz_free(snapshot);
    const int32_t ids[3] = { 5, 17, 300 };
    if (bz_session_feed(session, ids, 3, 1, NULL, NULL, NULL)) abort();
    if (bz_session_save(session, &snapshot, &n_whole, NULL)) abort();
    whole = snapshot;
}

static void sign(uint8_t *p, size_t n)
{
    struct sha256 h;
    if (n < HASH_BYTES) return;
    sha256_init(&h);
    sha256_feed(&h, p, n - HASH_BYTES);
    sha256_end(&h, p + n - HASH_BYTES);
}

static void check(const uint8_t *p, size_t n)
{
    struct bz_err err = { "" };
    enum bz_status st = bz_session_restore(session, p, n, &err);
    size_t n_held;
    bz_session_tokens(session, &n_held);
    if (st && (n_held || !err.text[0])) abort();
    if (st) return;
    /* What was restored is saved as the same bytes, and the session goes on. (Past the window a
     * layer may bring more rows than another, and the extra ones are forgotten.) */
    void *again;
    size_t n_again;
    if (bz_session_save(session, &again, &n_again, NULL)) abort();
    if (n_held < WINDOW && p[WIDTH_AT] == 4 && (n_again != n || memcmp(again, p, n) != 0)) abort();
    bz_free(again);
    uint32_t kept;
    if (bz_session_truncate(session, (uint32_t)(n_held / 2), &kept, NULL)) abort();
    int32_t id = 5;
    if (bz_session_feed(session, &id, 1, 1, NULL, NULL, &err)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!engine) start();
    check(data, size);
    uint8_t *copy = malloc(size + 1);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    sign(copy, size);
    check(copy, size);
    if (size >= HEAD_BYTES + HASH_BYTES) {
        memcpy(copy, head, TRUE_BYTES);
        memcpy(copy + WORN_AT, head + WORN_AT, HEAD_BYTES - WORN_AT);
        sign(copy, size);
        check(copy, size);
    }
    free(copy);
    uint8_t *over = malloc(n_whole);
    if (!over) abort();
    memcpy(over, whole, n_whole);
    for (size_t i = 0; i < size && TRUE_BYTES + i < n_whole; i++)
        if (TRUE_BYTES + i < WORN_AT || TRUE_BYTES + i >= HEAD_BYTES)
            over[TRUE_BYTES + i] ^= data[i];
    sign(over, n_whole);
    check(over, n_whole);
    free(over);
    return 0;
}
