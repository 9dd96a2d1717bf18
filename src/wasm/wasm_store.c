/* wasm_store.c - exports: Ollama's names and manifests and the digests of blobs, for hosts that
 * hold a store's directory. The host walks the files of the store; this file knows what their bytes
 * mean. */
#include "base/mem.h"
#include "base/sha256.h"
#include "wasm/wasm.h"

static void put_member(struct buf *b, const char *name, const char *value)
{
    buf_printf(b, "%s\"%s\":", b->n ? "," : "{", name);
    json_put_string(b, str_of(value));
}

EXPORT(int32_t, bz_wasm_store_name, const char *text, uint32_t n)
{
    struct ollama_name name;
    char short_name[OLLAMA_MAX_NAME];
    struct buf b = { 0 };
    if (wasm_failed(ollama_parse_name(&name, (struct str) { text, n }, &wasm_err))) return -1;
    ollama_short_name(&name, short_name);
    put_member(&b, "host", name.host);
    put_member(&b, "namespace", name.space);
    put_member(&b, "model", name.model);
    put_member(&b, "tag", name.tag);
    put_member(&b, "short", short_name);
    buf_putc(&b, '}');
    return wasm_give_text(&b);
}

EXPORT(int32_t, bz_wasm_store_manifest, const char *text, uint32_t n)
{
    static const char *const kinds[] = {
        [OLLAMA_LAYER_MODEL] = "model",       [OLLAMA_LAYER_PROJECTOR] = "projector",
        [OLLAMA_LAYER_ADAPTER] = "adapter",   [OLLAMA_LAYER_DRAFT] = "draft",
        [OLLAMA_LAYER_TEMPLATE] = "template", [OLLAMA_LAYER_SYSTEM] = "system",
        [OLLAMA_LAYER_PARAMS] = "params",     [OLLAMA_LAYER_MESSAGES] = "messages",
        [OLLAMA_LAYER_LICENSE] = "license",   [OLLAMA_LAYER_CONFIG] = "config",
    };
    struct ollama_manifest m;
    struct arena arena = { 0 };
    struct buf b = { 0 };
    enum bz_status st = ollama_parse_manifest(&m, (struct str) { text, n }, &arena, &wasm_err);
    if (st == BZ_OK && m.has_tensors)
        st = fail(&wasm_err, BZ_ERR_UNSUPPORTED, "the model is stored for MLX and not as GGUF");
    if (st == BZ_OK) {
        buf_putc(&b, '[');
        for (size_t i = 0; i < m.n_layers; i++)
            buf_printf(&b, "%s{\"kind\":\"%s\",\"digest\":\"%s\",\"size\":%llu}", i ? "," : "",
                       kinds[m.layers[i].kind], m.layers[i].digest,
                       (unsigned long long)m.layers[i].size);
        buf_putc(&b, ']');
    }
    arena_free(&arena);
    return wasm_failed(st) ? -1 : wasm_give_text(&b);
}

EXPORT(struct sha256 *, bz_wasm_sha256_open, void)
{
    struct sha256 *s = mem_alloc(1, sizeof *s);
    if (s) sha256_init(s);
    else wasm_failed(fail_memory(&wasm_err, sizeof *s));
    return s;
}

EXPORT(void, bz_wasm_sha256_feed, struct sha256 *s, const void *bytes, uint32_t n)
{
    sha256_feed(s, bytes, n);
}

EXPORT(void, bz_wasm_sha256_end, struct sha256 *s)
{
    static char hex[65];
    uint8_t digest[32];
    sha256_end(s, digest);
    sha256_hex(digest, hex);
    mem_free(s);
    wasm_show(hex, 64);
}
