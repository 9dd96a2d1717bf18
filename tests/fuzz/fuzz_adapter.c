/* Any bytes as an adapter. The first byte says which kind:
 *
 *     'g'  the rest is a GGUF file
 *     'p'  a line of adapter_config.json, then a safetensors file
 *     'r'  a line of pattern, then a path
 */
#include <math.h>
#include <stdlib.h>

#include "io/adapter.h"
#include "io/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every weight that was promised can be read. */
static void use(struct adapter *a)
{
    float sum = 0;
    for (size_t i = 0; i < a->n_targets; i++) {
        const struct adapter_target *t = &a->targets[i];
        if (!t->rank || !t->n_in || !t->n_out || !t->n_expert || !*t->name) abort();
        size_t n_a = (size_t)t->n_expert * t->rank * t->n_in;
        size_t n_b = (size_t)t->n_expert * t->rank * t->n_out;
        for (size_t k = 0; k < n_a; k++) sum += fabsf(t->a[k]);
        for (size_t k = 0; k < n_b; k++) sum += fabsf(t->b[k]);
    }
    if (isnan(sum)) abort();
    for (size_t i = 0; i < a->n_warnings; i++)
        if (!a->warnings[i][0]) abort();
    adapter_close(a);
}

static void fuzz_gguf(const uint8_t *data, size_t size)
{
    struct source src;
    struct gguf g;
    struct adapter a;
    struct bz_err err;
    if (source_open_memory(&src, "fuzz", data, size, &err)) return;
    if (gguf_open(&g, &src, 1, &err)) return;
    if (adapter_open_gguf(&a, &g, &err) == BZ_OK) use(&a);
    gguf_close(&g);
}

static void fuzz_peft(struct str config, const uint8_t *data, size_t size)
{
    struct source src;
    struct adapter a;
    struct bz_err err;
    if (source_open_memory(&src, "fuzz", data, size, &err)) return;
    if (adapter_open_peft(&a, &src, config, &err) == BZ_OK) use(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const uint8_t *p = data + 1;
    size_t n = size - 1;
    if (data[0] == 'g') fuzz_gguf(p, n);
    const uint8_t *line = n ? memchr(p, '\n', n) : NULL;
    if (!line) return 0;
    struct str first = { (const char *)p, (size_t)(line - p) };
    size_t n_rest = n - first.n - 1;
    bool hit;
    uint64_t work = 0;
    struct bz_err err;
    if (data[0] == 'p') fuzz_peft(first, line + 1, n_rest);
    if (data[0] == 'r')
        pattern_match_tail(&hit, first, (struct str) { (const char *)line + 1, n_rest }, &work,
                           &err);
    return 0;
}
