/* fuzz_render.c - any JSON renders or is refused in a sentence; the prompt is whole either way.
 *
 * Byte 0: options. The rest: {"messages": ..., "tools": ...}. */
#include <stdlib.h>

#include "base/mem.h"
#include "text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    struct arena a = { 0 };
    struct json *j = NULL;
    struct str text = { (const char *)data + 1, size - 1 };
    if (!json_parse(&j, text, &a, NULL)) {
        struct bz_err err = { "" };
        struct buf out = { 0 };
        struct chat_options opt = {
            .variant = data[0] & 1 ? CHAT_LARGE : CHAT_SMALL,
            .thinking = (data[0] & 2) != 0,
            .no_generation_prompt = (data[0] & 4) != 0,
            .preserve_thinking = (data[0] & 8) != 0,
        };
        const struct json *tools = json_get(j, "tools");
        enum bz_status st = chat_render(&out, json_get(j, "messages"), tools, opt, &err);
        if (st ? out.n != 0 || !err.text[0] : !str_starts(buf_str(&out), "<bos>")) abort();
        buf_free(&out);
    }
    arena_free(&a);
    return 0;
}
