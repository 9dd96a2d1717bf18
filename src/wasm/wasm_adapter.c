/* wasm_adapter.c - exports: an adapter as the bytes of a file, in the form that is asked for. */
#include "base/mem.h"
#include "io/adapter_write.h"
#include "wasm/wasm.h"

int32_t wasm_give_adapter(const struct adapter *a, enum adapter_file which, const char *base)
{
    struct buf gguf = { 0 }, weights = { 0 }, config = { 0 };
    enum bz_status st = which == ADAPTER_GGUF
                            ? adapter_write_gguf(&gguf, a, &wasm_err)
                            : adapter_write_peft(&weights, &config, a, base, &wasm_err);
    struct buf *wanted = which == ADAPTER_GGUF          ? &gguf
                         : which == ADAPTER_SAFETENSORS ? &weights
                                                        : &config;
    int32_t done = wasm_failed(st) ? -1 : wasm_give_text(wanted);
    if (done == 0) *wanted = (struct buf) { 0 };
    buf_free(&gguf);
    buf_free(&weights);
    buf_free(&config);
    return done;
}

EXPORT(int32_t, bz_wasm_adapter_file, const char *text, uint32_t n, enum adapter_file which)
{
    struct arena arena = { 0 };
    struct json *j;
    struct adapter a = { 0 };
    enum bz_status st = json_parse(&j, (struct str) { text, n }, &arena, &wasm_err);
    struct str name = st == BZ_OK ? json_get_str(j, "base") : (struct str) { 0 };
    const char *base = arena_copy_str(&arena, name.p, name.n);
    if (st == BZ_OK && !base) st = fail_memory(&wasm_err, name.n);
    if (st == BZ_OK) st = wasm_open_adapter(&a, j);
    int32_t done = wasm_failed(st) ? -1 : wasm_give_adapter(&a, which, base);
    adapter_close(&a);
    arena_free(&arena);
    return done;
}
