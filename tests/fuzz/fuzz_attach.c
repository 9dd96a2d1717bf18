/* Any bytes as an adapter, attached to a model that then runs, twice, with other strengths, and
 * detached again. The first byte says which kind: 'g' and a GGUF file, or 'p', a line of
 * adapter_config.json and a safetensors file. Run from the repository root. */
#include "engine.h"
#include "gguf_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

enum { N_MODELS = 3, N_IDS = 3 };

static struct base {
    bz_engine *engine;
    bz_session *session;
    float *logits; /* without adapters */
    uint32_t n_vocab;
} bases[N_MODELS];

static const int32_t ids[N_IDS] = { 2, 7, 8 };

/* The last logits of a session that starts again. */
static const float *run(struct base *b)
{
    struct bz_err err = { "" };
    uint32_t kept;
    if (bz_session_truncate(b->session, 0, &kept, &err)) abort();
    if (bz_session_feed(b->session, ids, N_IDS, 1, NULL, NULL, &err)) abort();
    return bz_session_logits(b->session);
}

static void open_base(struct base *b, const char *path)
{
    const struct bz_engine_options o = { .n_threads = 1 };
    const struct bz_session_options so = { .n_context = 8, .n_batch = 4 };
    if (bz_engine_open(&b->engine, path, &o, NULL)) abort();
    if (bz_session_open(&b->session, b->engine, &so, NULL)) abort();
    b->n_vocab = bz_engine_info(b->engine).n_vocab;
    b->logits = malloc(b->n_vocab * sizeof *b->logits);
    if (!b->logits) abort();
    memcpy(b->logits, run(b), b->n_vocab * sizeof *b->logits);
}

static void open_bases(void)
{
    open_base(&bases[0], "./tests/fuzz/seeds/model/shared");
    open_base(&bases[1], "./tests/fuzz/seeds/model/experts");
    open_base(&bases[2], "./tests/fuzz/seeds/model/blocks");
}

/* Bytes of the line that ends at a newline, that included; 0: there is none. */
static size_t line_bytes(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\n', size);
    return end ? (size_t)(end - data) + 1 : 0;
}

/* The JSON in front of a safetensors file, its length kept right, or the numbers behind it. */
static size_t mutate_safetensors(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    uint64_t n = 0;
    if (size >= 8) memcpy(&n, data, 8);
    if (size < 8 || n > size - 8 || seed % 8 == 0) return LLVMFuzzerMutate(data, size, max);
    size_t head = (size_t)n, tail = size - 8 - head;
    if (seed % 8 == 1) return 8 + head + LLVMFuzzerMutate(data + 8 + head, tail, max - 8 - head);
    uint8_t *numbers = malloc(tail + 1);
    if (!numbers) abort();
    memcpy(numbers, data + 8 + head, tail);
    n = head = LLVMFuzzerMutate(data + 8, head, max - 8 - tail);
    memcpy(data, &n, 8);
    memcpy(data + 8 + head, numbers, tail);
    free(numbers);
    return 8 + head + tail;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    if (size < 2 || max < size || seed % 64 == 0) return LLVMFuzzerMutate(data, size, max);
    if (data[0] == 'g') return 1 + gguf_mutate(data + 1, size - 1, max - 1, seed);
    size_t line = 1 + line_bytes(data + 1, size - 1);
    if (line == 1 || seed % 4 == 0) return LLVMFuzzerMutate(data, size, max);
    return line + mutate_safetensors(data + line, size - line, max - line, seed / 4);
}

/* The bytes as an adapter; false where they are none. It is taken over by whoever attaches it. */
static bool open_adapter(struct adapter *a, const uint8_t *data, size_t size)
{
    struct source src;
    struct gguf g;
    struct bz_err err = { "" };
    enum bz_status st = BZ_ERR_FORMAT;
    size_t line = size && data[0] == 'p' ? line_bytes(data + 1, size - 1) : 0;
    if (line) {
        if (source_open_memory(&src, "fuzz", data + 1 + line, size - 1 - line, NULL)) abort();
        st = adapter_open_peft(a, &src, (struct str) { (const char *)data + 1, line }, &err);
    } else if (size && data[0] == 'g') {
        if (source_open_memory(&src, "fuzz", data + 1, size - 1, NULL)) abort();
        st = gguf_open(&g, &src, 1, &err);
        if (st) return false;
        st = adapter_open_gguf(a, &g, &err);
        gguf_close(&g);
    }
    return st == BZ_OK;
}

static void try_on(struct base *b, const uint8_t *data, size_t size)
{
    struct adapter first, second;
    struct bz_err err = { "" };
    int one, two = -1;
    if (!open_adapter(&first, data, size)) return;
    if (engine_add_adapter(b->engine, &first, 1, &one, &err)) {
        if (!err.text[0]) abort();
    } else {
        run(b);
        if (!open_adapter(&second, data, size)) abort();
        if (engine_add_adapter(b->engine, &second, -0.5f, &two, &err)) abort();
        if (bz_adapter_scale(b->engine, one, 0, &err)) abort();
        run(b);
        if (bz_adapter_remove(b->engine, one, &err)) abort();
        if (bz_adapter_remove(b->engine, two, &err)) abort();
    }
    /* Whatever it was, the model is as it was. */
    if (memcmp(run(b), b->logits, b->n_vocab * sizeof *b->logits) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!bases[0].engine) open_bases();
    for (int i = 0; i < N_MODELS; i++) try_on(&bases[i], data, size);
    return 0;
}
