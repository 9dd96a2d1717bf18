/* Any bytes as a file to inspect: the text has nothing that a terminal would obey, and the JSON can
 * be read. If the first byte is '2' and a u32 follows, so many bytes are the first part of a split
 * model and the rest is the second. */
#include "base/json.h"
#include "base/utf8.h"
#include "cli/inspect.h"
#include "gguf_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

enum { HEAD = 5 };

/* Bytes of the first part; 0: there is only one. */
static size_t first_part(const uint8_t *data, size_t size)
{
    uint32_t n;
    if (size < HEAD || data[0] != '2') return 0;
    memcpy(&n, data + 1, sizeof n);
    return n > size - HEAD ? 0 : n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    size_t n = first_part(data, size);
    if (!n) return gguf_mutate(data, size, max, seed);
    if (max < size || seed % 32 == 0) return LLVMFuzzerMutate(data, size, max);
    if (seed % 2)
        return HEAD + n + gguf_mutate(data + HEAD + n, size - HEAD - n, max - HEAD - n, seed);
    size_t tail = size - HEAD - n;
    uint8_t *second = malloc(tail + 1);
    if (!second) abort();
    memcpy(second, data + HEAD + n, tail);
    uint32_t now = (uint32_t)gguf_mutate(data + HEAD, n, max - HEAD - tail, seed);
    memcpy(data + 1, &now, sizeof now);
    memcpy(data + HEAD + now, second, tail);
    free(second);
    return HEAD + now + tail;
}

static void show(const struct inspect *x)
{
    const struct inspect_wish all = { .keys = true, .tensors = true };
    struct buf text = { 0 }, json = { 0 };
    struct arena arena = { 0 };
    struct json *root;
    inspect_put_text(&text, x, all);
    inspect_put_json(&json, x, all);
    if (text.failed || json.failed) abort();
    for (size_t i = 0, used; i < text.n; i += used) {
        uint32_t c = utf8_decode(text.data + i, text.n - i, &used);
        if ((c < ' ' && c != '\n') || (c >= 0x7f && c < 0xa0) || c == 0xfffd) abort();
    }
    if (json_parse(&root, buf_str(&json), &arena, NULL) || root->type != JSON_OBJECT) abort();
    arena_free(&arena);
    buf_free(&text);
    buf_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t live = mem_live();
    size_t n = first_part(data, size);
    struct source parts[2];
    struct located file = { 0 };
    struct inspect x;
    struct bz_err err = { "" };
    if (n) {
        if (source_open_memory(&parts[0], "one", data + HEAD, n, NULL)) abort();
        if (source_open_memory(&parts[1], "two", data + HEAD + n, size - HEAD - n, NULL)) abort();
    } else if (source_open_memory(&parts[0], "one", data, size, NULL)) {
        abort();
    }
    enum bz_status st = gguf_open(&file.gguf, parts, n ? 2 : 1, &err);
    if (st == BZ_OK) st = inspect_file(&x, &file, "fuzz", &err);
    if (st == BZ_OK) {
        show(&x);
        inspect_close(&x);
    } else if (!err.text[0]) {
        abort();
    }
    if (mem_live() != live) abort();
    return 0;
}
