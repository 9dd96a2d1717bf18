/* wasm_inspect.c - export: what is in a model file, in the native tool's words. */
#include "base/mem.h"
#include "cli/inspect.h"
#include "wasm/wasm.h"

static enum bz_status inspect(struct inspect *out, const struct json *j, const char *model)
{
    struct located file;
    struct adapter adapter;
    enum bz_status st;
    if (json_get(j, "source")) {
        st = wasm_open_adapter(&adapter, j);
        if (st == BZ_OK) inspect_peft(out, &adapter, model);
        return st;
    }
    st = wasm_open_file(&file, j);
    return st ? st : inspect_file(out, &file, model, &wasm_err);
}

EXPORT(int32_t, bz_wasm_inspect, const char *text, uint32_t n)
{
    struct arena arena = { 0 };
    struct json *j;
    struct inspect x;
    struct buf b = { 0 };
    enum bz_status st = json_parse(&j, (struct str) { text, n }, &arena, &wasm_err);
    struct str name = st == BZ_OK ? json_get_str(j, "name") : (struct str) { 0 };
    const char *model = arena_copy_str(&arena, name.p, name.n);
    if (st == BZ_OK && !model) st = fail_memory(&wasm_err, name.n);
    if (st == BZ_OK) st = inspect(&x, j, model);
    if (st == BZ_OK) {
        struct inspect_wish wish = { .keys = json_flag(j, "keys"),
                                     .tensors = json_flag(j, "tensors") };
        if (json_flag(j, "json")) inspect_put_json(&b, &x, wish);
        else inspect_put_text(&b, &x, wish);
        inspect_close(&x);
    }
    arena_free(&arena);
    return wasm_failed(st) ? -1 : wasm_give_text(&b);
}
