/* fuzz_vocab.c - any bytes as a GGUF with a vocabulary: opened or refused, never worse. What opens
 * must encode and decode some text.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "gguf_mutate.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return gguf_mutate(data, size, max, seed);
}

static void use(const struct tokenizer *t)
{
    static const char text[] = "hello<|turn>\n\n\n <x>aaab\xc3\xa9\xf0\x9f\x98\x80\xff de</s>";
    struct ids ids = { 0 };
    struct detok d = { 0 };
    struct buf out = { 0 };
    for (int plain = 0; plain < 2; plain++) {
        struct tokenize_options opt = { .plain = plain };
        if (tokenizer_encode(t, str_of(text), opt, &ids, NULL)) abort();
    }
    for (size_t i = 0; i < ids.n; i++) {
        if (ids.data[i] < 0 || (uint32_t)ids.data[i] >= tokenizer_size(t)) abort();
        detok_feed(&d, t, ids.data[i], i % 2, &out);
    }
    detok_end(&d, &out);
    ids_free(&ids);
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source src;
    struct gguf g;
    struct tokenizer *t;
    if (source_open_memory(&src, "fuzz", data, size, NULL)) abort();
    if (gguf_open(&g, &src, 1, NULL)) return 0;
    if (!tokenizer_open(&t, &g, NULL)) {
        use(t);
        tokenizer_close(t);
    }
    gguf_close(&g);
    return 0;
}
