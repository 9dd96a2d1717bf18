/* fuzz_render.c - any JSON renders or is refused in a sentence. The prompt is whole either way, and
 * what people, tools and schemas say makes no tag.
 *
 * Byte 0: options. The rest: {"messages": ..., "tools": ...}. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PLAIN = 0x7f }; /* stands where a '<' stood */

/* How often each tag stands in the prompt of a text; false where it is refused. */
static bool render(unsigned counts[N_SPECIAL], uint8_t options, struct str text)
{
    struct arena a = { 0 };
    struct json *j = NULL;
    struct bz_err err = { "" };
    struct marked out = { 0 };
    enum bz_status st = json_parse(&j, text, &a, &err);
    if (st == BZ_OK) {
        struct chat_options opt = {
            .variant = options & 1 ? CHAT_LARGE : CHAT_SMALL,
            .thinking = (options & 2) != 0,
            .no_generation_prompt = (options & 4) != 0,
            .preserve_thinking = (options & 8) != 0,
            .begun = json_get(j, "begun"),
        };
        const struct json *tools = json_get(j, "tools");
        st = chat_render(&out, json_get(j, "messages"), tools, opt, NULL, &err);
        if (st ? out.text.n != 0 || out.n_marks || !err.text[0]
               : !str_starts(buf_str(&out.text), "<bos>"))
            abort();
        for (size_t i = 0; i < out.n_marks; i++) counts[out.marks[i].which]++;
    }
    marked_free(&out);
    arena_free(&a);
    return st == BZ_OK;
}

/* A model's own words may hold tags: its thoughts are cut out by them. */
static bool is_of_people(struct str text)
{
    struct arena a = { 0 };
    struct json *j = NULL;
    bool people = json_parse(&j, text, &a, NULL) == BZ_OK && !json_get(j, "begun");
    const struct json *messages = people ? json_get(j, "messages") : NULL, *m;
    for (size_t i = 0; people && messages && (m = json_at(messages, i)); i++) {
        struct str role = json_get_str(m, "role");
        people = !str_is(role, "assistant") && !str_is(role, "model");
    }
    arena_free(&a);
    return people;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned counts[N_SPECIAL] = { 0 }, plain[N_SPECIAL] = { 0 };
    if (size < 1) return 0;
    struct str text = { (const char *)data + 1, size - 1 };
    bool ok = render(counts, data[0], text);
    if (!memchr(text.p, '<', text.n) || memchr(text.p, PLAIN, text.n) || !is_of_people(text))
        return 0;
    char *copy = malloc(text.n);
    if (!copy) abort();
    for (size_t i = 0; i < text.n; i++) copy[i] = text.p[i] == '<' ? PLAIN : text.p[i];
    if (render(plain, data[0], (struct str) { copy, text.n }) != ok) abort();
    if (memcmp(counts, plain, sizeof counts) != 0) abort();
    free(copy);
    return 0;
}
