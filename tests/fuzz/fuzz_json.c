/* Any bytes as JSON: refused with a sentence, or read, written and read again as the same tree. */
#include <stdlib.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct json *a, const struct json *b)
{
    if (a->type != b->type || a->boolean != b->boolean || a->integer != b->integer || a->n != b->n)
        return false;
    if (memcmp(&a->number, &b->number, sizeof a->number) != 0) return false;
    if (!str_eq(a->text, b->text) || !str_eq(a->key, b->key)) return false;
    const struct json *x = a->child, *y = b->child;
    for (; x && y; x = x->next, y = y->next)
        if (!same(x, y)) return false;
    return !x && !y;
}

/* Numbers printed afresh must read back too. */
static void check_numbers(const struct json *j)
{
    if (j->type == JSON_FLOAT) {
        struct arena a = { 0 };
        struct buf b = { 0 };
        struct json *back;
        json_put_f64(&b, j->number);
        if (json_parse(&back, buf_str(&b), &a, NULL)) abort();
        if (memcmp(&back->number, &j->number, sizeof j->number) != 0) abort();
        buf_free(&b);
        arena_free(&a);
    }
    for (const struct json *c = j->child; c; c = c->next) check_numbers(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t live = mem_live();
    struct bz_err err = { "" };
    struct arena a = { 0 };
    struct json *j, *again;
    struct buf b = { 0 };
    if (json_parse(&j, (struct str) { (const char *)data, size }, &a, &err) == BZ_OK) {
        json_put(&b, j);
        if (json_parse(&again, buf_str(&b), &a, &err)) abort();
        if (!same(j, again)) abort();
        check_numbers(j);
    } else if (!err.text[0]) {
        abort();
    }
    buf_free(&b);
    arena_free(&a);
    if (mem_live() != live) abort();
    return 0;
}
