/* Any bytes as a safetensors file: it opens or it does not, and what it lists is inside it. */
#include <stdlib.h>

#include "io/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source src;
    struct safetensors s;
    struct bz_err err;
    if (source_open_memory(&src, "fuzz", data, size, &err)) return 0;
    if (safetensors_open(&s, &src, &err)) return 0;
    for (uint64_t i = 0; i < s.n_tensors; i++) {
        const struct st_tensor *t = &s.tensors[i];
        if (t->offset > size || t->n_bytes > size - t->offset) abort();
        if (t->n_dims > SAFETENSORS_MAX_DIMS) abort();
        if (safetensors_find(&s, t->name) != t) abort();
    }
    safetensors_close(&s);
    return 0;
}
