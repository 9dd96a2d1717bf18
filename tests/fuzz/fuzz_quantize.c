/* Any bytes as a model to write in other formats: the first byte chooses the mix, the rest is GGUF.
 * The result opens, with the same tensors. */
#include <stdio.h>
#include <unistd.h>

#include "cli/quantize.h"
#include "gguf_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    if (!size || seed % 16 == 0) return LLVMFuzzerMutate(data, size, max);
    return 1 + gguf_mutate(data + 1, size - 1, max - 1, seed);
}

static char path[4096];

static void leave(void)
{
    remove(path);
}

static void start(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.3000s/bezel_fuzz_%ld.gguf", tmp ? tmp : "/tmp", (long)getpid());
    atexit(leave);
}

static void compare(const struct gguf *was)
{
    struct gguf is;
    struct bz_err err;
    if (gguf_open_file(&is, path, &err) || is.n_tensors != was->n_tensors) abort();
    for (uint64_t i = 0; i < is.n_tensors; i++) {
        const struct gguf_tensor *x = &was->tensors[i], *y = &is.tensors[i];
        if (!str_eq(x->name, y->name) || memcmp(x->ne, y->ne, sizeof x->ne) != 0) abort();
    }
    gguf_close(&is);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t live = mem_live();
    struct source src;
    struct gguf g;
    struct bz_err err = { "" };
    if (!path[0]) start();
    if (!size) return 0;
    if (source_open_memory(&src, "fuzz", data + 1, size - 1, NULL)) abort();
    if (gguf_open(&g, &src, 1, NULL)) return 0;
    enum bz_status st =
        quantize_file(&g, path, (enum mix_id)(data[0] % N_MIX), NULL, NULL, NULL, &err);
    if (st == BZ_OK) compare(&g);
    else if (!err.text[0] || access(path, F_OK) == 0) abort();
    gguf_close(&g);
    remove(path);
    if (mem_live() != live) abort();
    return 0;
}
