/* adapter_file.c - adapters on disk: which of the forms a path is, and where its parts lie. */
#include "io/adapter.h"

#define MAX_CONFIG (4u << 20)

static enum bz_status open_peft(struct adapter *out, const char *config_path,
                                const char *weights_path, struct bz_err *err)
{
    struct source src;
    struct buf config = { 0 };
    enum bz_status st = source_open_file(&src, config_path, err);
    if (st) return st;
    st = source_read_all(&src, MAX_CONFIG, &config, err);
    source_close(&src);
    if (!st) st = source_open_file(&src, weights_path, err);
    if (!st) st = adapter_open_peft(out, &src, buf_str(&config), err);
    buf_free(&config);
    return st;
}

static enum bz_status open_gguf(struct adapter *out, const char *path, struct bz_err *err)
{
    struct gguf g;
    enum bz_status st = gguf_open_file(&g, path, err);
    if (st) return st;
    st = adapter_open_gguf(out, &g, err);
    gguf_close(&g);
    return st;
}

/* Is there a file of this name? A failed allocation is no answer. */
static enum bz_status look(bool *there, const char *path, struct bz_err *err)
{
    struct source src;
    enum bz_status st = source_open_file(&src, path, err);
    *there = st == BZ_OK;
    if (*there) source_close(&src);
    return st == BZ_ERR_MEMORY ? st : BZ_OK;
}

static enum bz_status open_either(struct adapter *out, const char *path, struct bz_err *err)
{
    struct buf config = { 0 }, weights = { 0 };
    bool peft = false;
    buf_printf(&config, "%s/adapter_config.json", path);
    buf_printf(&weights, "%s/adapter_model.safetensors", path);
    enum bz_status st = BZ_OK;
    if (config.failed || weights.failed) st = fail_memory(err, strlen(path));
    if (!st) st = look(&peft, config.data, err);
    if (!st && !peft) st = look(&peft, weights.data, err);
    if (!st) st = peft ? open_peft(out, config.data, weights.data, err) : open_gguf(out, path, err);
    buf_free(&config);
    buf_free(&weights);
    return st;
}

enum bz_status adapter_open_file(struct adapter *out, const char *path, struct bz_err *err)
{
    if (!str_ends(str_of(path), ".safetensors")) return open_either(out, path, err);
    struct buf config = { 0 };
    const char *slash = strrchr(path, '/');
    if (slash) buf_put(&config, path, (size_t)(slash - path) + 1);
    buf_puts(&config, "adapter_config.json");
    enum bz_status st =
        config.failed ? fail_memory(err, strlen(path)) : open_peft(out, config.data, path, err);
    buf_free(&config);
    return st;
}
