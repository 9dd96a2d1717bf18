/* source.c - the half of source.h that needs no host: range checks, memory, reading a whole text.
 *
 * It owns the rule that no range leaves a source's bounds; where bytes come from is the business of
 * the callbacks (source_file.c for files).
 */
#include "io/source.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static bool inside(const struct source *s, uint64_t offset, uint64_t n)
{
    return n <= s->size && offset <= s->size - n;
}

static enum bz_status memory_read(void *ctx, uint64_t offset, void *dst, size_t n,
                                  struct bz_err *err)
{
    (void)err;
    memcpy(dst, (const unsigned char *)ctx + offset, n);
    return BZ_OK;
}

static const void *memory_map(void *ctx, uint64_t offset, size_t n)
{
    (void)n;
    return (const unsigned char *)ctx + offset;
}

enum bz_status source_open_memory(struct source *out, const char *name, const void *data, size_t n,
                                  struct bz_err *err)
{
    size_t n_name = strlen(name);
    char *copy = mem_copy_str(name, n_name);
    if (!copy) return fail_memory(err, n_name + 1);
    *out = (struct source) {
        .name = copy,
        .size = n,
        .ctx = (void *)(uintptr_t)data, /* only ever read */
        .read = memory_read,
        .map = memory_map,
    };
    return BZ_OK;
}

enum bz_status source_read(const struct source *s, uint64_t offset, void *dst, size_t n,
                           struct bz_err *err)
{
    if (!inside(s, offset, n))
        return fail(err, BZ_ERR_FORMAT,
                    "%s: %zu bytes are wanted at byte %" PRIu64 ", but it ends at byte %" PRIu64,
                    s->name, n, offset, s->size);
    return n ? s->read(s->ctx, offset, dst, n, err) : BZ_OK;
}

const void *source_map(const struct source *s, uint64_t offset, uint64_t n)
{
    if (!s->map || n == 0 || n > SIZE_MAX || !inside(s, offset, n)) return NULL;
    return s->map(s->ctx, offset, (size_t)n);
}

bool source_lost(const struct source *s)
{
    return s->lost && s->lost(s->ctx);
}

enum bz_status source_check(const struct source *s, uint32_t n, struct bz_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (source_lost(&s[i]))
            return fail(err, BZ_ERR_IO,
                        "%s: was changed or became shorter while it was in use, or its drive went "
                        "away",
                        s[i].name);
    return BZ_OK;
}

enum bz_status source_read_all(const struct source *s, uint64_t max, struct buf *out,
                               struct bz_err *err)
{
    if (s->size > max)
        return fail(err, BZ_ERR_LIMIT,
                    "%s: %" PRIu64 " bytes are more than the %" PRIu64 " allowed", s->name, s->size,
                    max);
    if (s->size >= SIZE_MAX) return fail_memory(err, s->size);
    size_t n = (size_t)s->size;
    char *text = mem_grow(NULL, n + 1, 1);
    if (!text) return fail_memory(err, s->size + 1);
    enum bz_status st = source_read(s, 0, text, n, err);
    if (st) {
        mem_free(text);
        return st;
    }
    text[n] = 0;
    *out = (struct buf) { .data = text, .n = n, .cap = n + 1 };
    return BZ_OK;
}

void source_close(struct source *s)
{
    if (s->close) s->close(s->ctx);
    mem_free(s->name);
    *s = (struct source) { 0 };
}
