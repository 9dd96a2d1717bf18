/* wasm_load.c - exports: bringing a model to the GPU.
 *
 * The host drives: it brings the windows of the weights. Nothing here waits.
 */
#include "gpu/ops_gpu.h"
#include "wasm/wasm.h"

static struct gpu_ops *gpu_ops_of_engine(const bz_engine *e)
{
    return e->backend.ctx;
}

/* ---- windows ---- */

/* What the host reads of a window; `window` goes back with the bytes. */
struct window_for_host {
    uint32_t source, n_bytes;
    double offset;
    struct upload_window window;
};

/* Bytes of weights still to be uploaded, of a fresh engine: all of them. */
EXPORT(double, bz_wasm_gpu_upload_bytes, const bz_engine *e)
{
    const struct upload *u = &gpu_ops_of_engine(e)->upload;
    return (double)(u->bytes_total - u->bytes_done);
}

/* Fill *out with the next window of at most max_bytes; 0 when there is none left. */
EXPORT(int32_t, bz_wasm_gpu_upload_next, bz_engine *e, uint32_t max_bytes,
       struct window_for_host *out)
{
    if (!upload_next(&gpu_ops_of_engine(e)->upload, max_bytes, &out->window)) return 0;
    out->source = (uint32_t)(uintptr_t)out->window.src->ctx;
    out->n_bytes = out->window.n_bytes;
    out->offset = (double)out->window.offset;
    return 1;
}

EXPORT(uint32_t, bz_wasm_gpu_window_size, void)
{
    return sizeof(struct window_for_host);
}

EXPORT(int32_t, bz_wasm_gpu_upload_give, bz_engine *e, const struct window_for_host *w,
       const void *bytes)
{
    return wasm_failed(upload_give(&gpu_ops_of_engine(e)->upload, &w->window, bytes, &wasm_err))
               ? -1
               : 0;
}
