/* Any bytes as a script of `bezel diffuse`: refused with a sentence, or canvases of tokens. */
#include <stdlib.h>

#include "base/mem.h"
#include "cli/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N = 3, VOCAB = 50 };

static void use(const int32_t *ids, size_t n)
{
    if (n && !ids) abort();
    for (size_t i = 0; ids && i < n * N; i++)
        if (ids[i] < 0 || ids[i] >= VOCAB) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t live = mem_live();
    struct bz_err err = { "" };
    struct script s = { 0 };
    if (script_read(&s, (struct str) { (const char *)data, size }, N, VOCAB, &err) == BZ_OK) {
        use(s.random, s.n_random);
        use(s.sampled, s.n_sampled);
    } else if (!err.text[0]) {
        abort();
    }
    script_free(&s);
    if (mem_live() != live) abort();
    return 0;
}
