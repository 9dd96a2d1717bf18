/* Any bytes as a model and an adapter to merge into it: a u32, so many bytes of the model, and the
 * adapter, both GGUF. The result is whole, and tensors that the adapter does not name are as they
 * were. */
#include "gguf_mutate.h"
#include "io/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* Where the adapter begins. */
static size_t split_at(const uint8_t *data, size_t size)
{
    uint32_t n = 0;
    if (size < 4) return size;
    memcpy(&n, data, 4);
    return n > size - 4 ? size : 4 + n;
}

/* The model, the adapter, or now and then both: a pair that fits must go on fitting. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    size_t cut = split_at(data, size), rest = size - cut;
    if (size < 4 || max < size || seed % 64 == 0) return LLVMFuzzerMutate(data, size, max);
    uint8_t *adapter = malloc(max);
    if (!adapter) abort();
    memcpy(adapter, data + cut, rest);
    if (seed % 3 != 1) rest = gguf_mutate(adapter, rest, max - cut, seed);
    if (seed % 3 != 0 && max - 4 > rest)
        cut = 4 + gguf_mutate(data + 4, cut - 4, max - 4 - rest, seed);
    uint32_t n = (uint32_t)(cut - 4);
    memcpy(data, &n, 4);
    memcpy(data + cut, adapter, rest);
    free(adapter);
    return cut + rest;
}

static enum bz_status put(void *ctx, const void *p, size_t n, struct bz_err *err)
{
    (void)err;
    buf_put(ctx, p, n);
    return BZ_OK;
}

static bool open_gguf(struct gguf *g, const void *data, size_t size)
{
    struct source src;
    if (source_open_memory(&src, "fuzz", data, size, NULL)) abort();
    return gguf_open(g, &src, 1, NULL) == BZ_OK;
}

static bool is_named(const struct adapter *a, struct str name)
{
    for (size_t i = 0; i < a->n_targets; i++)
        if (str_is(name, a->targets[i].name)) return true;
    return false;
}

static void compare(const struct gguf *was, const struct adapter *a, const struct buf *out)
{
    struct gguf is;
    if (!open_gguf(&is, out->data, out->n) || is.n_tensors != was->n_tensors) abort();
    for (uint64_t i = 0; i < is.n_tensors; i++) {
        const struct gguf_tensor *x = &was->tensors[i], *y = &is.tensors[i];
        if (!str_eq(x->name, y->name) || memcmp(x->ne, y->ne, sizeof x->ne) != 0) abort();
        if (is_named(a, x->name)) continue;
        if (x->type != y->type || x->n_bytes != y->n_bytes) abort();
        const void *from = source_map(&was->sources[0], x->offset, x->n_bytes);
        const void *to = source_map(&is.sources[0], y->offset, y->n_bytes);
        if (!from || !to || memcmp(from, to, (size_t)x->n_bytes) != 0) abort();
    }
    gguf_close(&is);
}

static void merge(const struct gguf *g, const struct adapter *a)
{
    struct buf out = { 0 };
    const struct gguf_sink sink = { .ctx = &out, .put = put };
    struct gguf_writer *w;
    struct merge *m = NULL;
    struct merge_window next;
    struct bz_err err = { "" };
    if (gguf_writer_open_sink(&w, "out", &sink, &err)) abort();
    enum bz_status st = merge_open(&m, g, a, 0.5f, w, &err);
    if (st == BZ_OK) {
        while (merge_next(m, &next)) {
            const void *bytes = source_map(next.src, next.offset, next.n_bytes);
            if (!bytes) abort();
            merge_give(m, bytes);
        }
        merge_close(m);
        st = gguf_writer_finish(w, &err);
        if (st == BZ_OK) compare(g, a, &out);
    } else {
        gguf_writer_abort(w);
    }
    if (st && !err.text[0]) abort();
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t live = mem_live();
    size_t cut = split_at(data, size);
    struct gguf g, own_file;
    struct adapter a;
    if (size < 4 || !open_gguf(&g, data + 4, cut - 4)) return 0;
    if (open_gguf(&own_file, data + cut, size - cut)) {
        if (adapter_open_gguf(&a, &own_file, NULL) == BZ_OK) {
            merge(&g, &a);
            adapter_close(&a);
        }
        gguf_close(&own_file);
    }
    gguf_close(&g);
    if (mem_live() != live) abort();
    return 0;
}
