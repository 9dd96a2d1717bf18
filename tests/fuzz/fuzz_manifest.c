/* Any bytes as one of Ollama's texts. The first byte says which: 'm' manifest, 'c' config, 'p'
 * params, 's' messages, 'n' a model's name.
 */
#include <stdlib.h>

#include "io/ollama.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_manifest(struct str text, struct arena *a)
{
    struct ollama_manifest m;
    struct bz_err err;
    if (ollama_parse_manifest(&m, text, a, &err)) return;
    for (size_t i = 0; i < m.n_layers; i++) {
        const struct ollama_layer *l = &m.layers[i];
        if (strlen(l->digest) != 64 || strspn(l->digest, "0123456789abcdefABCDEF") != 64) abort();
        if (l->size > m.total_size) abort();
        if (!ollama_layer_at(&m, l->kind, 0)) abort();
    }
}

/* What is deleted by a manifest is named by digests alone. */
static void fuzz_blobs(struct str text, struct arena *a)
{
    struct ollama_blobs blobs;
    struct bz_err err;
    if (ollama_parse_blobs(&blobs, text, a, &err)) return;
    for (size_t i = 0; i < blobs.n; i++)
        if (strspn(blobs.v[i].digest, "0123456789abcdef") != 64 || blobs.v[i].digest[64]) abort();
}

/* A valid name is four safe path components, and its short form means the same. */
static void fuzz_name(struct str text)
{
    struct ollama_name n, again;
    struct bz_err err;
    char shown[OLLAMA_MAX_NAME];
    if (ollama_parse_name(&n, text, &err)) return;
    for (int i = 0; i < OLLAMA_N_PARTS; i++) {
        const char *part = ollama_name_part(&n, (enum ollama_part)i);
        if (!*part || *part == '.' || strchr(part, '/') || strchr(part, '\\')) abort();
    }
    ollama_short_name(&n, shown);
    if (ollama_parse_name(&again, str_of(shown), &err)) abort();
    for (int i = 0; i < OLLAMA_N_PARTS; i++)
        if (!ollama_text_same(ollama_name_part(&n, (enum ollama_part)i),
                              ollama_name_part(&again, (enum ollama_part)i)))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    struct arena a = { 0 };
    struct bz_err err;
    struct str text = { (const char *)data + 1, size - 1 };
    struct ollama_config config;
    struct ollama_params params;
    struct ollama_message *messages;
    size_t n;
    switch (data[0]) {
    case 'm': fuzz_manifest(text, &a), fuzz_blobs(text, &a); break;
    case 'c': ollama_parse_config(&config, text, &a, &err); break;
    case 'p':
        if (ollama_parse_params(&params, text, &a, &err) == BZ_OK)
            for (size_t i = 0; i < params.n_stop; i++)
                if (!params.stop[i].p) abort();
        break;
    case 's':
        if (ollama_parse_messages(&messages, &n, text, &a, &err) == BZ_OK)
            for (size_t i = 0; i < n; i++)
                if (!messages[i].role.p || !messages[i].content.p) abort();
        break;
    case 'n': fuzz_name(text); break;
    default: break;
    }
    arena_free(&a);
    return 0;
}
