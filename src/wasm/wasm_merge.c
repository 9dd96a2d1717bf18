/* wasm_merge.c - exports: a model with an adapter added into its weights. The host brings the bytes
 * of one file and takes those of the other. */
#include "base/mem.h"
#include "io/merge.h"
#include "wasm/wasm.h"

struct merging {
    struct located file;
    struct adapter adapter;
    struct gguf_writer *writer;
    struct merge *merge;
    struct buf out; /* what the host has not taken yet */
};

static enum bz_status put_out(void *ctx, const void *p, size_t n, struct bz_err *err)
{
    struct merging *m = ctx;
    buf_put(&m->out, p, n);
    return m->out.failed ? fail_memory(err, m->out.n + n) : BZ_OK;
}

/* Hand over what there is of the new file. */
static int32_t show_out(struct merging *m)
{
    if (m->out.failed) return wasm_failed(fail_memory(&wasm_err, m->out.n)) ? -1 : 0;
    wasm_show(m->out.data, m->out.n);
    m->out.n = 0;
    return 0;
}

static enum bz_status begin(struct merging *m, const struct json *j)
{
    float scale = 1;
    const struct gguf_sink sink = { .ctx = m, .put = put_out };
    json_f32(j, "scale", &scale);
    enum bz_status st = wasm_open_file(&m->file, j);
    if (st == BZ_OK) st = wasm_open_adapter(&m->adapter, json_get(j, "adapter"));
    if (st == BZ_OK) st = gguf_writer_open_sink(&m->writer, "the new model", &sink, &wasm_err);
    if (st == BZ_OK)
        st = merge_open(&m->merge, &m->file.gguf, &m->adapter, scale, m->writer, &wasm_err);
    return st;
}

EXPORT(void, bz_wasm_merge_close, struct merging *m)
{
    if (!m) return;
    merge_close(m->merge);
    gguf_writer_abort(m->writer);
    adapter_close(&m->adapter);
    locate_close(&m->file);
    buf_free(&m->out);
    mem_free(m);
}

EXPORT(struct merging *, bz_wasm_merge_open, const char *text, uint32_t n)
{
    struct arena arena = { 0 };
    struct json *j;
    struct merging *m = mem_alloc(1, sizeof *m);
    enum bz_status st = m ? json_parse(&j, (struct str) { text, n }, &arena, &wasm_err)
                          : fail_memory(&wasm_err, sizeof *m);
    if (st == BZ_OK) st = begin(m, j);
    arena_free(&arena);
    if (!wasm_failed(st)) return m;
    bz_wasm_merge_close(m);
    return NULL;
}

EXPORT(double, bz_wasm_merge_bytes, const struct merging *m)
{
    return (double)gguf_writer_size(m->writer);
}

EXPORT(uint32_t, bz_wasm_merge_changed, const struct merging *m)
{
    return (uint32_t)merge_n_changed(m->merge);
}

EXPORT(int32_t, bz_wasm_merge_next, struct merging *m)
{
    static struct host_window window;
    struct merge_window next;
    if (!merge_next(m->merge, &next)) return 0;
    window.source = (uint32_t)(uintptr_t)next.src->ctx;
    window.n_bytes = (uint32_t)next.n_bytes;
    window.offset = (double)next.offset;
    wasm_show(&window, sizeof window);
    return 1;
}

EXPORT(int32_t, bz_wasm_merge_give, struct merging *m, const void *bytes)
{
    merge_give(m->merge, bytes);
    return show_out(m);
}

EXPORT(int32_t, bz_wasm_merge_end, struct merging *m)
{
    struct gguf_writer *w = m->writer;
    m->writer = NULL;
    return wasm_failed(gguf_writer_finish(w, &wasm_err)) ? -1 : show_out(m);
}
